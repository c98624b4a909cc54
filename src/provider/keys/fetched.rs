//! Keys that are fetched, and how often.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tokio::sync::watch;
use tokio::time::Instant;

use super::address::KeyRequest;
use super::client::KeyClient;
use super::key_source::Wanted;
use super::set::KeySet;
use crate::error_chain::{BoxError, ErrorChain};
use crate::expiring_map::ExpiringMap;
use crate::provider::signature::{KeyNotFetched, SignatureError};

/// The longest answer, in bytes.
pub(super) const MAX_ANSWER: usize = 256 * 1024;

/// How many addresses of an account are remembered.
const MAX_ADDRESSES: usize = 100;

/// How many addresses of an account that have no keys are asked in a pause.
const MAX_ASKED: usize = 10;

/// An address without keys is asked again after this part of the pause.
const SOONER: u32 = 12;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;
type Client = Arc<dyn Fn(Request<Bytes>) -> Answer + Send + Sync>;

/// Keys by their address. Clones share them.
#[derive(Clone)]
pub(super) struct Fetched {
    client: Client,
    accounts: Arc<Mutex<HashMap<String, Account>>>,
    /// What was visited a moment ago.
    visited: ExpiringMap<String, ()>,
    pub(super) max_age: Duration,
    pub(super) pause: Duration,
    pub(super) timeout: Duration,
}

/// The addresses of a host, or of an account there. Requests choose among them, but not the account: what
/// somebody sends to one endpoint uses up nothing of another's.
#[derive(Default)]
struct Account {
    addresses: HashMap<String, Address>,
    /// When addresses without keys were asked.
    asked: Vec<Instant>,
}

/// What is known of an address.
struct Address {
    /// The keys, and when they were fetched.
    keys: Option<(Arc<KeySet>, Instant)>,
    /// Why the last fetch has failed, if it has.
    failure: Option<Arc<str>>,
    asked: Instant,
    /// The last fetch, whose sender is dropped at its end.
    flight: watch::Receiver<()>,
}

impl Address {
    fn is_under_way(&self) -> bool {
        self.flight.has_changed().is_ok()
    }
}

impl Fetched {
    pub(super) fn new(client: impl KeyClient) -> Self {
        const PAUSE: Duration = Duration::from_secs(60);
        let client = Arc::new(client);
        Self {
            client: Arc::new(move |request| {
                let client = client.clone();
                Box::pin(async move { client.fetch(request).await })
            }),
            accounts: Arc::default(),
            visited: ExpiringMap::new(MAX_ADDRESSES, PAUSE),
            max_age: Duration::from_secs(60 * 60),
            pause: PAUSE,
            timeout: Duration::from_secs(3),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys at an address, among which one is wanted; or that they have to be fetched. If that was done
    /// for this request, what there is counts.
    pub(super) fn look_up(
        &self,
        request: &KeyRequest,
        wanted: Wanted<'_>,
        was_fetched: bool,
    ) -> Result<Arc<KeySet>, SignatureError> {
        let needed =
            |reason: &str| SignatureError::KeyNotFetched(KeyNotFetched::new(request, reason));
        let accounts = self.lock();
        let account = accounts.get(&request.bounds());
        let Some(address) = account.and_then(|account| account.addresses.get(&request.id())) else {
            return Err(needed("it was not asked yet, or too many others were"));
        };
        match &address.keys {
            Some((keys, fetched)) if wanted.is_in(keys) => {
                let is_old = fetched.elapsed() >= self.max_age;
                match is_old && !was_fetched && self.may_ask(address) {
                    true => Err(needed("the keys are old")),
                    false => Ok(keys.clone()),
                }
            }
            _ => match &address.failure {
                Some(failure) => Err(needed(failure)),
                None if was_fetched => Err(SignatureError::UnknownKey),
                None => Err(needed("the key is not among those that were fetched")),
            },
        }
    }

    fn may_ask(&self, address: &Address) -> bool {
        let pause = match address.keys {
            Some(_) => self.pause,
            None => self.pause / SOONER,
        };
        !address.is_under_way() && address.asked.elapsed() >= pause
    }

    /// Waits for the fetch of an address, which it begins if none is under way. Whether there was one.
    pub(super) async fn fetch(&self, request: &KeyRequest, limit: Duration) -> bool {
        match self.flight(request) {
            None => false,
            Some(mut flight) => {
                // It fails when the sender is dropped, at the end.
                let _ = tokio::time::timeout(limit, flight.changed()).await;
                true
            }
        }
    }

    /// The fetch of an address. `None` if it may not be asked now.
    fn flight(&self, request: &KeyRequest) -> Option<watch::Receiver<()>> {
        let mut accounts = self.lock();
        let account = accounts.entry(request.bounds()).or_default();
        let id = request.id();
        let keys = match account.addresses.get(&id) {
            Some(address) if address.is_under_way() => return Some(address.flight.clone()),
            Some(address) if !self.may_ask(address) => return None,
            Some(address) => address.keys.clone(),
            None => None,
        };
        if keys.is_none() && !account.may_ask_another(&id, self.pause, self.max_age) {
            return None;
        }
        let (sender, flight) = watch::channel(());
        let address = Address {
            keys,
            // Until it ends; and if it panics, or the runtime shuts down.
            failure: Some("the fetch has not ended".into()),
            asked: Instant::now(),
            flight: flight.clone(),
        };
        account.addresses.insert(id, address);
        drop(accounts);
        // A task, so that a sender who hangs up does not end it.
        let (source, request) = (self.clone(), request.clone());
        tokio::spawn(async move {
            let answer = tokio::time::timeout(source.timeout, source.ask(&request)).await;
            source.end(
                &request,
                answer.unwrap_or_else(|_| Err("it took too long".into())),
            );
            drop(sender);
        });
        Some(flight)
    }

    async fn ask(&self, request: &KeyRequest) -> Result<KeySet, BoxError> {
        let answer = (self.client)(request.to_http()?).await?;
        if answer.status() != StatusCode::OK {
            return Err(format!("it answered with {}", answer.status()).into());
        }
        if answer.body().len() > MAX_ANSWER {
            return Err("its answer is longer than 256 KiB".into());
        }
        Ok(KeySet::read(std::str::from_utf8(answer.body())?)?)
    }

    fn end(&self, request: &KeyRequest, answer: Result<KeySet, BoxError>) {
        let host = request.host();
        let failure = answer.as_ref().err().map(|error| {
            let error: &(dyn Error + 'static) = &**error;
            ErrorChain(error).to_string()
        });
        match &failure {
            None => tracing::debug!(host, "fetched the keys of a provider"),
            Some(error) => tracing::warn!(host, error, "could not fetch the keys of a provider"),
        }
        let mut accounts = self.lock();
        let account = accounts.get_mut(&request.bounds());
        // It may have made room for another one.
        if let Some(address) = account.and_then(|all| all.addresses.get_mut(&request.id())) {
            address.failure = failure.map(Into::into);
            if let Ok(keys) = answer {
                address.keys = Some((Arc::new(keys), Instant::now()));
            }
        }
    }

    /// Visits an address, unless that was done a moment ago: whoever has captured a handshake can send it
    /// again.
    pub(super) async fn visit(&self, url: &str) -> Result<(), BoxError> {
        if self.visited.get(url).is_some() {
            return Ok(());
        }
        let request = KeyRequest::get(url.to_owned()).to_http()?;
        let answer = tokio::time::timeout(self.timeout, (self.client)(request)).await;
        let answer = answer.unwrap_or_else(|_| Err("it took too long".into()))?;
        if answer.status() != StatusCode::OK {
            return Err(format!("it was answered with {}", answer.status()).into());
        }
        self.visited.insert(url.to_owned(), ());
        Ok(())
    }
}

impl Account {
    /// Whether an address without keys may be asked, which is then counted. It makes room for it.
    fn may_ask_another(&mut self, id: &str, pause: Duration, max_age: Duration) -> bool {
        self.asked.retain(|asked| asked.elapsed() < pause);
        if self.asked.len() >= MAX_ASKED {
            return false;
        }
        if self.addresses.len() >= MAX_ADDRESSES && !self.addresses.contains_key(id) {
            let others = self.addresses.iter();
            let is_in_use =
                |address: &Address| address.keys.is_some() && address.asked.elapsed() < max_age;
            let oldest = others
                .filter(|(_, address)| !is_in_use(address) && !address.is_under_way())
                .min_by_key(|(_, address)| (address.keys.is_some(), address.asked))
                .map(|(id, _)| id.clone());
            match oldest {
                None => return false,
                Some(oldest) => self.addresses.remove(&oldest),
            };
        }
        self.asked.push(Instant::now());
        true
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(60);
    const MAX_AGE: Duration = Duration::from_secs(3600);

    /// An account with as many addresses as are remembered, of which some have keys.
    fn full(with_keys: usize) -> Account {
        let addresses = (0..MAX_ADDRESSES).map(|i| {
            let (_, flight) = watch::channel(());
            let keys = (i < with_keys).then(|| (Arc::new(KeySet::none()), Instant::now()));
            let address = Address {
                keys,
                failure: None,
                asked: Instant::now(),
                flight,
            };
            (i.to_string(), address)
        });
        Account {
            addresses: addresses.collect(),
            asked: Vec::new(),
        }
    }

    #[test]
    fn g14_addresses_are_bounded_and_those_in_use_stay() {
        let mut account = full(MAX_ADDRESSES - 1);
        assert!(account.may_ask_another("new", PAUSE, MAX_AGE));
        assert_eq!(account.addresses.len(), MAX_ADDRESSES - 1);
        assert!(
            account
                .addresses
                .values()
                .all(|address| address.keys.is_some())
        );

        let mut in_use = full(MAX_ADDRESSES);
        assert!(!in_use.may_ask_another("new", PAUSE, MAX_AGE));
        assert_eq!(in_use.addresses.len(), MAX_ADDRESSES);
        // Those that no request has needed for longer than keys are used make room.
        assert!(in_use.may_ask_another("new", PAUSE, Duration::ZERO));
        assert_eq!(in_use.addresses.len(), MAX_ADDRESSES - 1);
    }
}
