//! The slots in which attempts run, and the deliveries that wait for one.
//!
//! To take a delivery is a transaction that waits for the disk. If that began when a slot is free, the
//! slots would be idle half of the time. So some are taken ahead, and wait for a slot in line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Nothing is taken ahead while attempts, with their rests, take longer than this. It would gain
/// nothing.
const SHORT: Duration = Duration::from_millis(500);

/// How many wait for each slot. Half of them last for longer than it takes to take others, and each
/// time pays for as many.
const TURNS: u32 = 4;

/// The longest time that a delivery waits for a slot. Its attempt has to end within the lease.
const MAX_WAIT: Duration = Duration::from_secs(5);

pub(super) struct Slots {
    /// How many attempts run at once.
    concurrency: u32,
    free: Arc<Semaphore>,
    /// Places for deliveries that wait for a slot.
    ahead: Arc<Semaphore>,
    /// Whether the pool leaves a connection for it while all slots are in use.
    may_take_ahead: bool,
    /// How long the last attempt took, with its rest, in milliseconds.
    last_took: AtomicU64,
}

/// What can be taken: deliveries that begin at once, and deliveries that wait for a slot.
pub(super) struct Room {
    slots: Option<OwnedSemaphorePermit>,
    ahead: Option<OwnedSemaphorePermit>,
}

/// Where a delivery is that was taken.
pub(super) enum Place {
    Slot(OwnedSemaphorePermit),
    Ahead(OwnedSemaphorePermit),
}

impl Slots {
    /// At most `concurrency` attempts at once, with at most `connections` between them.
    pub(super) fn new(concurrency: usize, connections: usize) -> Arc<Self> {
        let concurrency = concurrency.min(connections);
        let ahead = concurrency.saturating_mul(TURNS as usize);
        Arc::new(Self {
            concurrency: u32::try_from(concurrency).unwrap_or(u32::MAX),
            free: Arc::new(Semaphore::new(concurrency)),
            ahead: Arc::new(Semaphore::new(ahead.min(Semaphore::MAX_PERMITS))),
            may_take_ahead: concurrency < connections,
            // Unknown.
            last_took: AtomicU64::new(u64::MAX),
        })
    }

    /// Whether to take deliveries ahead of a free slot, as far as the attempts are concerned.
    pub(super) fn may_take_ahead(&self) -> bool {
        let last_took = Duration::from_millis(self.last_took.load(Ordering::Relaxed));
        self.may_take_ahead && last_took <= SHORT
    }

    pub(super) fn turn_took(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.last_took.store(millis, Ordering::Relaxed);
    }

    /// Waits until there is a free slot.
    pub(super) async fn slots(&self) -> Room {
        // The semaphore is never closed.
        let slots = self.free.clone().acquire_owned().await.ok();
        Room { slots, ahead: None }
    }

    /// Waits until half of the places are free: several are taken at a time, and the others last
    /// until they are there.
    pub(super) async fn places_ahead(&self) -> Room {
        let half = self.places().div_ceil(2);
        let ahead = self.ahead.clone().acquire_many_owned(half).await.ok();
        Room { slots: None, ahead }
    }

    /// Adds all that is free besides.
    pub(super) fn fill(&self, room: &mut Room) {
        add_all(&mut room.slots, &self.free);
        match self.may_take_ahead() {
            true => add_all(&mut room.ahead, &self.ahead),
            false => room.ahead = None,
        }
    }

    /// Waits for the turn of a delivery that was taken ahead. `None` if that takes too long.
    pub(super) async fn turn(&self, lease: Duration) -> Option<OwnedSemaphorePermit> {
        let wait = MAX_WAIT.min(lease / 4);
        let turn = tokio::time::timeout(wait, self.free.clone().acquire_owned()).await;
        if turn.is_err() {
            // They take longer than they did.
            self.turn_took(Duration::MAX);
        }
        turn.ok()?.ok()
    }

    /// Waits until nothing runs and nothing waits.
    pub(super) async fn all_free(&self) {
        let _ = self.ahead.acquire_many(self.places()).await;
        let _ = self.free.acquire_many(self.concurrency).await;
    }

    /// How many deliveries wait for a slot at most.
    fn places(&self) -> u32 {
        self.concurrency.saturating_mul(TURNS)
    }
}

fn add_all(permit: &mut Option<OwnedSemaphorePermit>, semaphore: &Arc<Semaphore>) {
    while let Ok(another) = semaphore.clone().try_acquire_owned() {
        match permit {
            Some(permit) => permit.merge(another),
            None => *permit = Some(another),
        }
    }
}

impl Room {
    pub(super) fn slots(&self) -> usize {
        let permit = self.slots.as_ref();
        permit.map_or(0, OwnedSemaphorePermit::num_permits)
    }

    pub(super) fn places_ahead(&self) -> usize {
        let permit = self.ahead.as_ref();
        permit.map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// A slot, if there is one left, and otherwise a place in line.
    pub(super) fn next_place(&mut self) -> Option<Place> {
        let next = |permit: &mut Option<OwnedSemaphorePermit>| permit.as_mut()?.split(1);
        next(&mut self.slots)
            .map(Place::Slot)
            .or_else(|| next(&mut self.ahead).map(Place::Ahead))
    }
}
