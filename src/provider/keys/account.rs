//! The addresses of a host, or of an account there: which keys are known, and which address is asked next.
//!
//! Anyone can send a request that names a new address. So an address whose keys are known is kept apart from
//! those that have none yet, and each of the latter's steps is bounded.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::address::KeyRequest;
use super::set::KeySet;

/// How many addresses with keys are remembered.
const MAX_KNOWN: usize = 100;

/// How many addresses without keys are asked at a time. One that has failed counts for a while longer.
const MAX_PLACES: usize = 10;

/// How many addresses without keys are asked in a pause.
const MAX_ASKED: usize = 120;

/// How many addresses wait for a place.
const MAX_WAITING: usize = 1000;

/// An address without keys that has failed keeps its place for this part of the pause.
const SOONER: u32 = 12;

/// Ends when the sender is dropped, at the end of a fetch.
pub(super) type Flight = watch::Receiver<()>;

fn is_under_way(flight: &Flight) -> bool {
    flight.has_changed().is_ok()
}

/// Requests choose among the addresses, but not the account: what somebody sends to one endpoint uses up
/// nothing of another's.
#[derive(Default)]
pub(super) struct Account {
    known: HashMap<String, Known>,
    places: HashMap<String, Place>,
    waiting: HashMap<String, Waiting>,
    /// When addresses without keys were asked, the first one first.
    asked: VecDeque<Instant>,
    /// Counts what happens, for its order.
    events: u64,
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
    request: KeyRequest,
    fetch: watch::Sender<()>,
    /// By how many requests.
    named: u64,
    since: u64,
}

/// A fetch that is to begin. Its sender is dropped at its end.
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
        // Until it ends; and if it panics, or the runtime shuts down.
        self.failure = Some("the fetch has not ended".into());
        Fetch {
            request: request.clone(),
            sender,
        }
    }
}

impl Account {
    fn count(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// An address with keys, which a request uses.
    pub(super) fn known(&mut self, id: &str) -> Option<&mut Known> {
        let used = self.count();
        let known = self.known.get_mut(id)?;
        known.used = used;
        Some(known)
    }

    /// Why an address has no keys, if it was asked a moment ago.
    pub(super) fn failure(&self, id: &str) -> Option<&str> {
        match self.places.get(id)? {
            Place::Failed { reason, .. } => Some(reason),
            Place::UnderWay(_) => None,
        }
    }

    /// A request names an address without keys, which waits for a place if it has none.
    pub(super) fn name(&mut self, request: &KeyRequest, pause: Duration) {
        self.free_places(pause);
        let id = request.id();
        if self.places.contains_key(&id) {
            return;
        }
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.named += 1;
            return;
        }
        if self.waiting.len() >= MAX_WAITING {
            let all = self.waiting.iter();
            let least = all.min_by_key(|(_, waiting)| (waiting.named, waiting.since));
            if let Some(least) = least.map(|(id, _)| id.clone()) {
                self.waiting.remove(&least);
            }
        }
        let waiting = Waiting {
            request: request.clone(),
            fetch: watch::channel(()).0,
            named: 1,
            since: self.count(),
        };
        self.waiting.insert(id, waiting);
    }

    /// The fetch of an address without keys, for a request that has named it. `None` if that was asked a
    /// moment ago; or if addresses that have failed hold places, as they do in a flood of forged requests: a
    /// request that waited for a place would mostly wait in vain.
    pub(super) fn flight(&self, id: &str) -> Option<Flight> {
        match (self.places.get(id), self.waiting.get(id)) {
            (Some(Place::UnderWay(flight)), _) => Some(flight.clone()),
            (None, Some(waiting)) if self.is_moving() => Some(waiting.fetch.subscribe()),
            _ => None,
        }
    }

    fn is_moving(&self) -> bool {
        let is_under_way = |place: &Place| matches!(place, Place::UnderWay(_));
        self.asked.len() < MAX_ASKED && self.places.values().all(is_under_way)
    }

    /// The fetch that comes next, if one may begin now: of the addresses that wait, that which most requests
    /// have named. The provider's own requests name the same one again, and forged ones cannot do so for
    /// each of many.
    pub(super) fn next(&mut self, pause: Duration) -> Option<Fetch> {
        self.free_places(pause);
        while let Some(first) = self.asked.front()
            && first.elapsed() >= pause
        {
            self.asked.pop_front();
        }
        if self.places.len() >= MAX_PLACES || self.asked.len() >= MAX_ASKED {
            return None;
        }
        let all = self.waiting.iter();
        let most = all.max_by_key(|(_, waiting)| (waiting.named, Reverse(waiting.since)));
        let id = most.map(|(id, _)| id.clone())?;
        let Waiting { request, fetch, .. } = self.waiting.remove(&id)?;
        self.places.insert(id, Place::UnderWay(fetch.subscribe()));
        self.asked.push_back(Instant::now());
        Some(Fetch {
            request,
            sender: fetch,
        })
    }

    fn free_places(&mut self, pause: Duration) {
        let now = Instant::now();
        for place in self.places.values_mut() {
            // The client has panicked, or the runtime was shut down.
            if let Place::UnderWay(flight) = place
                && !is_under_way(flight)
            {
                *place = Place::failed("the fetch has not ended".into(), pause);
            }
        }
        self.places.retain(|_, place| match place {
            Place::UnderWay(_) => true,
            Place::Failed { until, .. } => now < *until,
        });
    }

    /// An address has answered with keys. The one that was not used for the longest time makes room, although
    /// it may be in use: a provider may have a key for each of its webhooks, and more of these than fit.
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
            None => {
                self.places.insert(id, Place::failed(reason, pause));
            }
        }
    }
}

impl Place {
    fn failed(reason: Arc<str>, pause: Duration) -> Self {
        Self::Failed {
            reason,
            until: Instant::now() + pause / SOONER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(60);

    fn at(address: impl Into<String>) -> KeyRequest {
        KeyRequest::get(address.into())
    }

    fn name(account: &mut Account, address: impl Into<String>) {
        account.name(&at(address), PAUSE);
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

    #[tokio::test(start_paused = true)]
    async fn g14_those_that_wait_are_bounded_and_the_most_named_comes_first() {
        let mut account = Account::default();
        let mut under_way = Vec::new();
        for i in 0..MAX_PLACES {
            name(&mut account, format!("forged {i}"));
            under_way.extend(next(&mut account));
        }
        assert_eq!(under_way.len(), MAX_PLACES);
        name(&mut account, "authentic");
        name(&mut account, "authentic");
        for i in 0..2 * MAX_WAITING {
            name(&mut account, format!("another {i}"));
        }
        assert_eq!(account.waiting.len(), MAX_WAITING);
        assert!(next(&mut account).is_none());
        account.fail(at("forged 0").id(), "404".into(), PAUSE);
        assert!(next(&mut account).is_none());
        tokio::time::advance(PAUSE / SOONER).await;
        let asked = next(&mut account);
        let asked = asked.as_ref().map(|fetch| fetch.request.url());
        assert_eq!(asked, Some("authentic"));
        assert!(next(&mut account).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn g14_no_more_are_asked_in_a_pause() {
        let mut account = Account::default();
        for i in 0..2 * MAX_ASKED {
            name(&mut account, i.to_string());
        }
        let mut asked = 0;
        while let Some(fetch) = next(&mut account) {
            learn(&mut account, fetch.request.url());
            asked += 1;
        }
        assert_eq!(asked, MAX_ASKED);
        tokio::time::advance(PAUSE).await;
        assert!(next(&mut account).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_ends_without_an_answer_holds_its_place_like_one_that_fails() {
        let mut account = Account::default();
        name(&mut account, "a");
        drop(next(&mut account));
        name(&mut account, "a");
        assert!(next(&mut account).is_none());
        assert!(account.failure(&at("a").id()).is_some());
        tokio::time::advance(PAUSE / SOONER).await;
        name(&mut account, "a");
        assert!(next(&mut account).is_some());
    }
}
