//! The addresses of a host, or of an account there: the known keys, and the address to ask next.
//!
//! Anyone can send a request that names a new address. So an address whose keys are known is kept apart from
//! those that have none yet, and each of the latter's steps is bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::address::KeyRequest;
use super::seen::Seen;
use super::set::KeySet;

/// How many addresses with keys are remembered.
const MAX_KNOWN: usize = 100;

/// How many addresses without keys are asked at a time. One that has failed keeps its place for a while.
const MAX_PLACES: usize = 10;

/// The most addresses without keys that are asked within a pause, or that wait for a place.
const MAX_ASKED: usize = 120;

/// How many wait while failed addresses hold places, which become free one after the other. Each has its turn, so the
/// longest wait is this times the least time between two turns.
const MAX_WAITING_IN_FLOOD: usize = 50;

/// How many places of failed addresses become free in a pause.
const FREED: u32 = 6;

/// Ends when the sender is dropped, at the end of a fetch.
pub(super) type Flight = watch::Receiver<()>;

fn is_under_way(flight: &Flight) -> bool {
    flight.has_changed().is_ok()
}

/// Requests choose among the addresses, but not the account: requests to one endpoint use up nothing of another's.
#[derive(Default)]
pub(super) struct Account {
    known: HashMap<String, Known>,
    places: HashMap<String, Place>,
    /// The first one is asked next.
    waiting: VecDeque<Waiting>,
    /// When addresses without keys were asked, the first one first.
    asked: VecDeque<Instant>,
    /// Counts the uses of keys, for their order.
    uses: u64,
}

/// An address that has answered with keys.
pub(super) struct Known {
    pub(super) keys: Arc<KeySet>,
    pub(super) fetched: Instant,
    /// Why the last fetch has failed, if it has.
    pub(super) failure: Option<Arc<str>>,
    asked: Instant,
    flight: Option<Flight>,
    used: u64,
}

/// An address without keys that is asked, or was asked a moment ago.
enum Place {
    UnderWay(Flight),
    Failed { reason: Arc<str>, until: Instant },
}

/// An address without keys that waits for a place.
struct Waiting {
    id: String,
    fetch: Fetch,
}

/// A fetch to begin. Its sender is dropped at its end.
pub(super) struct Fetch {
    pub(super) request: KeyRequest,
    pub(super) sender: watch::Sender<()>,
}

impl Known {
    pub(super) fn flight(&self) -> Option<&Flight> {
        self.flight.as_ref().filter(|flight| is_under_way(flight))
    }

    /// Whether it may be asked again.
    pub(super) fn may_be_asked(&self, pause: Duration) -> bool {
        self.flight().is_none() && self.asked.elapsed() >= pause
    }

    pub(super) fn begin(&mut self, request: &KeyRequest) -> Fetch {
        let (sender, flight) = watch::channel(());
        self.asked = Instant::now();
        self.flight = Some(flight);
        // Until it ends; and if its runtime ends before.
        self.failure = Some("the fetch has not ended".into());
        Fetch {
            request: request.clone(),
            sender,
        }
    }
}

impl Account {
    fn count(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// An address with keys, which a request uses.
    pub(super) fn known(&mut self, id: &str) -> Option<&mut Known> {
        let used = self.count();
        let known = self.known.get_mut(id)?;
        known.used = used;
        Some(known)
    }

    /// Whether an address with keys may be asked although nothing shows that it has new ones: if no address was asked
    /// during the pause. Anyone can send requests that are not signed with the keys that they name.
    pub(super) fn may_check_again(&self, pause: Duration) -> bool {
        self.known.values().all(|known| known.may_be_asked(pause))
    }

    /// Why an address has no keys, if it was asked a moment ago.
    pub(super) fn failure(&self, id: &str) -> Option<&str> {
        match self.places.get(id)? {
            Place::Failed { reason, .. } => Some(reason),
            Place::UnderWay(_) => None,
        }
    }

    /// A request names an address without keys, which waits for a place if it has none. In a flood of forged
    /// requests, only an address that was named before waits: forged requests name a new one each time, and an
    /// authentic request comes again with the same one.
    pub(super) fn name(&mut self, request: &KeyRequest, seen: &mut Seen) {
        self.free_places();
        let id = request.id();
        if self.places.contains_key(&id) || self.waiting.iter().any(|waiting| waiting.id == id) {
            return;
        }
        if self.places.is_empty() {
            // For a while no fetch has ended that would have asked them. Their requests come again.
            self.waiting.clear();
        }
        let is_flood = self.has_failures();
        let is_place_left = self.places.len() + self.waiting.len() < MAX_PLACES;
        let has_room = match is_flood {
            false => self.waiting.len() < MAX_ASKED,
            true if is_place_left => true,
            true => seen.has_been(&id) && self.waiting.len() < MAX_WAITING_IN_FLOOD,
        };
        if has_room {
            let fetch = Fetch {
                request: request.clone(),
                sender: watch::channel(()).0,
            };
            self.waiting.push_back(Waiting { id, fetch });
        }
    }

    /// The fetch of an address without keys, for a request that has named it. `None` if the address was asked a moment
    /// ago; or if failed addresses hold places, as they do in a flood of forged requests: a request that waited for a
    /// place would usually wait without success.
    pub(super) fn flight(&self, id: &str) -> Option<Flight> {
        if let Some(Place::UnderWay(flight)) = self.places.get(id) {
            return Some(flight.clone());
        }
        if self.has_failures() || self.asked.len() >= MAX_ASKED {
            return None;
        }
        let waiting = self.waiting.iter().find(|waiting| waiting.id == id)?;
        Some(waiting.fetch.sender.subscribe())
    }

    /// Whether addresses that have failed hold places.
    fn has_failures(&self) -> bool {
        let mut places = self.places.values();
        places.any(|place| matches!(place, Place::Failed { .. }))
    }

    /// The fetch that comes next, if one may begin now.
    pub(super) fn next(&mut self, pause: Duration) -> Option<Fetch> {
        self.free_places();
        while let Some(first) = self.asked.front()
            && first.elapsed() >= pause
        {
            self.asked.pop_front();
        }
        if self.places.len() >= MAX_PLACES || self.asked.len() >= MAX_ASKED {
            return None;
        }
        let Waiting { id, fetch } = self.waiting.pop_front()?;
        self.places
            .insert(id, Place::UnderWay(fetch.sender.subscribe()));
        self.asked.push_back(Instant::now());
        Some(fetch)
    }

    fn free_places(&mut self) {
        let now = Instant::now();
        self.places.retain(|_, place| match place {
            // Otherwise its runtime has ended, which says nothing about the address.
            Place::UnderWay(flight) => is_under_way(flight),
            Place::Failed { until, .. } => now < *until,
        });
    }

    /// An address has answered with keys. The least recently used one makes room, although it may still be in use: a
    /// provider may have a key for each of its webhooks, and more webhooks than fit.
    pub(super) fn learn(&mut self, id: String, keys: KeySet) {
        self.places.remove(&id);
        if self.known.len() >= MAX_KNOWN && !self.known.contains_key(&id) {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.known.remove(&oldest);
            }
        }
        let known = Known {
            keys: Arc::new(keys),
            fetched: Instant::now(),
            failure: None,
            asked: Instant::now(),
            flight: None,
            used: self.count(),
        };
        self.known.insert(id, known);
    }

    /// The key of an address has ended.
    pub(super) fn forget(&mut self, id: String, pause: Duration) {
        self.known.remove(&id);
        self.fail(id, "the provider has no such key".into(), pause);
    }

    /// A fetch has failed. Keys that are known stay.
    pub(super) fn fail(&mut self, id: String, reason: Arc<str>, pause: Duration) {
        match self.known.get_mut(&id) {
            Some(known) => {
                known.failure = Some(reason);
                known.flight = None;
            }
            None => self.hold_place(id, reason, pause),
        }
    }

    /// A failed address holds its place until the places before it have become free, and a while longer. So the places
    /// are a bucket: forged requests cause as many fetches at once, and then few, while fetches that find keys use up
    /// nothing.
    fn hold_place(&mut self, id: String, reason: Arc<str>, pause: Duration) {
        let held = self.places.values().filter_map(|place| match place {
            Place::UnderWay(_) => None,
            Place::Failed { until, .. } => Some(*until),
        });
        let last = held.chain([Instant::now()]).max();
        let until = last.unwrap_or_else(Instant::now) + pause / FREED;
        self.places.insert(id, Place::Failed { reason, until });
        self.waiting.truncate(MAX_WAITING_IN_FLOOD);
    }

    /// Whether it can be dropped: it has no keys younger than `max_stale`, and no fetch is under way or has just
    /// failed.
    pub(super) fn is_idle(&mut self, max_stale: Duration) -> bool {
        self.free_places();
        let is_old =
            |known: &Known| known.flight().is_none() && known.fetched.elapsed() >= max_stale;
        self.places.is_empty() && self.known.values().all(is_old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(60);

    fn at(address: impl Into<String>) -> KeyRequest {
        KeyRequest::get(address.into())
    }

    fn name(account: &mut Account, seen: &mut Seen, address: impl Into<String>) {
        account.name(&at(address), seen);
    }

    fn next(account: &mut Account) -> Option<Fetch> {
        account.next(PAUSE)
    }

    fn learn(account: &mut Account, address: impl Into<String>) {
        account.learn(at(address).id(), KeySet::none());
    }

    fn knows(account: &mut Account, address: &str) -> bool {
        account.known(&at(address).id()).is_some()
    }

    #[test]
    fn g14_the_keys_that_were_not_used_for_the_longest_time_make_room() {
        let mut account = Account::default();
        for i in 0..MAX_KNOWN {
            learn(&mut account, i.to_string());
        }
        assert!(knows(&mut account, "0"));
        learn(&mut account, "new");
        assert_eq!(account.known.len(), MAX_KNOWN);
        assert!(knows(&mut account, "0") && knows(&mut account, "new"));
        assert!(!knows(&mut account, "1"));
    }

    /// Names so many addresses, which are asked and fail.
    fn fail(account: &mut Account, seen: &mut Seen, number: usize) {
        for i in 0..number {
            name(account, seen, format!("failed {i}"));
            if let Some(fetch) = next(account) {
                account.fail(fetch.request.id(), "404".into(), PAUSE);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn g14_as_many_fetches_that_fail_are_made_at_once_and_then_one_in_each_part_of_a_pause() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        fail(&mut account, &mut seen, 2 * MAX_PLACES);
        assert_eq!(account.asked.len(), MAX_PLACES);
        for _ in 0..20 {
            tokio::time::advance(PAUSE / FREED).await;
            let asked = (0..3).filter(|i| {
                name(
                    &mut account,
                    &mut seen,
                    format!("{i} at {:?}", Instant::now()),
                );
                let fetch = next(&mut account);
                if let Some(fetch) = &fetch {
                    account.fail(fetch.request.id(), "404".into(), PAUSE);
                }
                fetch.is_some()
            });
            assert_eq!(asked.count(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn g14_in_a_flood_what_is_named_again_is_asked_before_what_is_new() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        fail(&mut account, &mut seen, MAX_PLACES);
        name(&mut account, &mut seen, "authentic");
        assert!(account.waiting.is_empty());
        name(&mut account, &mut seen, "authentic");
        for i in 0..1000 {
            name(&mut account, &mut seen, i.to_string());
        }
        assert!(next(&mut account).is_none());
        tokio::time::advance(PAUSE / FREED).await;
        name(&mut account, &mut seen, "new");
        let asked = next(&mut account);
        let asked = asked.as_ref().map(|fetch| fetch.request.url());
        assert_eq!(asked, Some("authentic"));
        assert!(account.waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn g14_those_that_wait_in_a_flood_are_bounded_and_forgotten_after_it() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        fail(&mut account, &mut seen, MAX_PLACES);
        for i in 0..2000 {
            name(&mut account, &mut seen, (i % 1000).to_string());
        }
        assert_eq!(account.waiting.len(), MAX_WAITING_IN_FLOOD);
        tokio::time::advance(2 * PAUSE).await;
        name(&mut account, &mut seen, "authentic");
        let asked = next(&mut account);
        let asked = asked.as_ref().map(|fetch| fetch.request.url());
        assert_eq!(asked, Some("authentic"));
    }

    #[tokio::test(start_paused = true)]
    async fn g14_no_more_are_asked_in_a_pause_and_no_more_wait() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        name(&mut account, &mut seen, "under way");
        let under_way = next(&mut account);
        assert!(under_way.is_some());
        for i in 0..3 * MAX_ASKED {
            name(&mut account, &mut seen, i.to_string());
        }
        assert_eq!(account.waiting.len(), MAX_ASKED);
        let mut asked = 1;
        while let Some(fetch) = next(&mut account) {
            learn(&mut account, fetch.request.url());
            asked += 1;
        }
        assert_eq!(asked, MAX_ASKED);
        tokio::time::advance(PAUSE).await;
        assert!(next(&mut account).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn g14_a_failure_leaves_no_more_waiting_than_have_their_turn_soon() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        name(&mut account, &mut seen, "first");
        let first = next(&mut account);
        for i in 0..MAX_ASKED {
            name(&mut account, &mut seen, i.to_string());
        }
        let id = first.map(|fetch| fetch.request.id()).unwrap_or_default();
        account.fail(id, "404".into(), PAUSE);
        assert_eq!(account.waiting.len(), MAX_WAITING_IN_FLOOD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_whose_runtime_has_ended_frees_its_place_at_once() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        name(&mut account, &mut seen, "a");
        drop(next(&mut account));
        name(&mut account, &mut seen, "a");
        assert!(account.failure(&at("a").id()).is_none());
        assert!(next(&mut account).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_place_only_where_none_is_held_by_a_failure() {
        let (mut account, mut seen) = (Account::default(), Seen::default());
        name(&mut account, &mut seen, "waits");
        assert!(account.flight(&at("waits").id()).is_some());
        fail(&mut account, &mut seen, 1);
        name(&mut account, &mut seen, "waits too");
        assert!(account.flight(&at("waits too").id()).is_none());
    }
}
