//! The addresses of a host, or of an account at that host: which keys are known, and which address is asked next.
//!
//! To ask an address is to fetch its keys. The pause is the shortest time from one fetch of an address to the next.
//! Anyone can send a request that names a new address. So addresses whose keys are known are stored apart from
//! addresses without keys, and the number of addresses without keys is limited at each step.

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

/// How many *places* there are. An address without keys needs a place to be asked. An address that has failed keeps
/// its place for a while.
const MAX_PLACES: usize = 10;

/// The maximum number of addresses without keys that are asked within a pause, and also of addresses that wait for a
/// place.
const MAX_ASKED: usize = 120;

/// How many addresses can wait while failed addresses hold places. These places become free one after the other, and
/// the waiting addresses are asked in order. So the longest wait is this number times the time from one free place to
/// the next.
const MAX_WAITING_IN_FLOOD: usize = 50;

/// How many places of failed addresses become free within a pause.
const FREED: u32 = 6;

/// A fetch that is under way. The channel is closed when the sender is dropped, at the end of the fetch.
pub(super) type Flight = watch::Receiver<()>;

fn is_under_way(flight: &Flight) -> bool {
    flight.has_changed().is_ok()
}

/// What is known about the addresses of one account. Requests choose the address, but not the account, so requests
/// to one endpoint use up nothing that belongs to the account of another endpoint.
#[derive(Default)]
pub(super) struct Account {
    known: HashMap<String, Known>,
    places: HashMap<String, Place>,
    /// The first element is asked next.
    waiting: VecDeque<Waiting>,
    /// When addresses without keys were asked, oldest first.
    asked: VecDeque<Instant>,
    /// Counts the uses of keys, to find the least recently used ones.
    uses: u64,
}

/// An address that has answered with keys.
pub(super) struct Known {
    pub(super) keys: Arc<KeySet>,
    pub(super) fetched: Instant,
    /// Why the last fetch failed, if it did.
    pub(super) failure: Option<Arc<str>>,
    asked: Instant,
    flight: Option<Flight>,
    used: u64,
}

/// An address without keys that is being asked, or was asked a moment ago.
enum Place {
    UnderWay(Flight),
    Failed { reason: Arc<str>, until: Instant },
}

/// An address without keys that waits for a place.
struct Waiting {
    id: String,
    fetch: Fetch,
}

/// A fetch to start. Its sender is dropped when the fetch ends.
pub(super) struct Fetch {
    pub(super) request: KeyRequest,
    pub(super) sender: watch::Sender<()>,
}

impl Known {
    pub(super) fn flight(&self) -> Option<&Flight> {
        self.flight.as_ref().filter(|flight| is_under_way(flight))
    }

    /// Whether the address may be asked again.
    pub(super) fn may_be_asked(&self, pause: Duration) -> bool {
        self.flight().is_none() && self.asked.elapsed() >= pause
    }

    pub(super) fn begin(&mut self, request: &KeyRequest) -> Fetch {
        let (sender, flight) = watch::channel(());
        self.asked = Instant::now();
        self.flight = Some(flight);
        // This is the reason until the fetch ends. It remains the reason if the runtime of the fetch shuts down first.
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

    /// The entry of an address with keys. It counts as used by a request.
    pub(super) fn known(&mut self, id: &str) -> Option<&mut Known> {
        let used = self.count();
        let known = self.known.get_mut(id)?;
        known.used = used;
        Some(known)
    }

    /// Whether an address with keys may be asked although nothing shows that it has new keys. It may be asked if none
    /// of the account's addresses with keys was asked during the pause. This limit is needed because anyone can send a
    /// request that is not signed with the key that it names.
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

    /// Records that a request names an address without keys. If the address has no place, it waits for one.
    ///
    /// In a flood of forged requests, an address waits only if it was named before: forged requests name a new
    /// address each time, while an authentic request comes again with the same address.
    pub(super) fn name(&mut self, request: &KeyRequest, seen: &mut Seen) {
        self.free_places();
        let id = request.id();
        if self.places.contains_key(&id) || self.waiting.iter().any(|waiting| waiting.id == id) {
            return;
        }
        if self.places.is_empty() {
            // No fetch has ended for a while, so the waiting addresses were not asked. Forget them: the requests that
            // named them come again.
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
    /// ago. Also `None` if failed addresses hold places, as in a flood of forged requests, because a request that
    /// waited for a place would usually wait without success.
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

    /// The next fetch, if one may start now.
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
            // A fetch that holds a place but is not under way has lost its runtime. That says nothing about the
            // address, so the place becomes free.
            Place::UnderWay(flight) => is_under_way(flight),
            Place::Failed { until, .. } => now < *until,
        });
    }

    /// Stores the keys with which an address has answered. If there are too many addresses, the least recently used one
    /// is forgotten. It may still be in use: a provider may have a key for each of its webhooks, and more than
    /// [`MAX_KNOWN`] webhooks.
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

    /// Forgets the key of an address, because the provider has withdrawn it.
    pub(super) fn forget(&mut self, id: String, pause: Duration) {
        self.known.remove(&id);
        self.fail(id, "the provider has no such key".into(), pause);
    }

    /// Records that a fetch has failed. Known keys stay.
    pub(super) fn fail(&mut self, id: String, reason: Arc<str>, pause: Duration) {
        match self.known.get_mut(&id) {
            Some(known) => {
                known.failure = Some(reason);
                known.flight = None;
            }
            None => self.hold_place(id, reason, pause),
        }
    }

    /// Lets a failed address hold its place for a while. The places of failed addresses become free one after the
    /// other: each place a sixth of a pause ([`FREED`]) after the place before it. So forged requests cause at most
    /// [`MAX_PLACES`] fetches at once, and then one fetch for each place that becomes free. A fetch that finds keys
    /// frees its place at once.
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

    /// Whether the account can be dropped: it has no keys younger than `max_stale`, and no fetch is under way or
    /// has just failed.
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

    /// Makes requests name `number` new addresses. Each address that is asked fails.
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
