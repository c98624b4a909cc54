//! Keys that are fetched, and how often.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
use super::set::KeySet;
use super::source::Wanted;
use crate::error::{BoxError, ErrorChain};
use crate::provider::signature::{KeyNotFetched, SignatureError};

/// The longest answer, in bytes.
pub(super) const MAX_ANSWER: usize = 256 * 1024;

/// How many addresses are remembered.
const MAX_ADDRESSES: usize = 100;

/// How many new addresses that requests name are asked in a pause.
const MAX_NEW: usize = 10;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;
type Client = Arc<dyn Fn(Request<Bytes>) -> Answer + Send + Sync>;

/// Keys by their address. Clones share them.
#[derive(Clone)]
pub(super) struct Fetched {
    client: Client,
    addresses: Arc<Mutex<HashMap<String, Address>>>,
    pub(super) max_age: Duration,
    pub(super) pause: Duration,
    pub(super) timeout: Duration,
}

/// What is known of an address.
struct Address {
    keys: Option<Arc<KeySet>>,
    /// When the keys were fetched.
    fetched: Instant,
    /// When the address was asked last.
    asked: Instant,
    /// Why the last fetch has failed, if it has.
    failure: Option<Arc<str>>,
    /// The last fetch, whose sender is dropped at its end.
    flight: watch::Receiver<()>,
    is_fixed: bool,
}

impl Address {
    fn is_under_way(&self) -> bool {
        self.flight.has_changed().is_ok()
    }
}

impl Fetched {
    pub(super) fn new(client: impl KeyClient) -> Self {
        let client = Arc::new(client);
        Self {
            client: Arc::new(move |request| {
                let client = client.clone();
                Box::pin(async move { client.fetch(request).await })
            }),
            addresses: Arc::default(),
            max_age: Duration::from_secs(60 * 60),
            pause: Duration::from_secs(60),
            timeout: Duration::from_secs(3),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Address>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys at an address, among which one is wanted; or that they have to be fetched. After that was
    /// done for this request, what there is counts.
    pub(super) fn look_up(
        &self,
        request: &KeyRequest,
        wanted: Wanted<'_>,
        was_fetched: bool,
    ) -> Result<Arc<KeySet>, SignatureError> {
        let needed =
            |reason: &str| SignatureError::KeyNotFetched(KeyNotFetched::new(request, reason));
        let addresses = self.lock();
        let Some(address) = addresses.get(&request.id()) else {
            return Err(needed("it was not asked yet, or too many were"));
        };
        let is_under_way = address.is_under_way();
        let may_ask = !is_under_way && !was_fetched && self.may_ask(address);
        let keys = address.keys.as_ref().filter(|keys| wanted.is_in(keys));
        match keys {
            Some(_) if may_ask && address.fetched.elapsed() >= self.max_age => {
                Err(needed("the keys are old"))
            }
            Some(keys) => Ok(keys.clone()),
            None if may_ask || is_under_way => Err(needed("the key is not among those fetched")),
            None => match &address.failure {
                Some(failure) => Err(needed(failure)),
                None => Err(SignatureError::UnknownKey),
            },
        }
    }

    fn may_ask(&self, address: &Address) -> bool {
        let pause = match address.keys {
            Some(_) => self.pause,
            None => self.pause / 12,
        };
        address.asked.elapsed() >= pause
    }

    /// Waits for the fetch of an address, which it begins if none is under way.
    pub(super) async fn fetch(&self, request: &KeyRequest, timeout: Duration) {
        if let Some(mut flight) = self.flight(request, timeout) {
            // It fails when the sender is dropped, at the end.
            let _ = tokio::time::timeout(timeout, flight.changed()).await;
        }
    }

    /// The fetch of an address. `None` if it was asked a moment ago, or may not be asked.
    fn flight(&self, request: &KeyRequest, timeout: Duration) -> Option<watch::Receiver<()>> {
        let mut addresses = self.lock();
        let id = request.id();
        if !addresses.contains_key(&id) && !self.has_room(&mut addresses, request) {
            return None;
        }
        let now = Instant::now();
        let (sender, receiver) = watch::channel(());
        match addresses.entry(id.clone()) {
            Entry::Occupied(known) => {
                let address = known.into_mut();
                if address.is_under_way() {
                    return Some(address.flight.clone());
                }
                if !self.may_ask(address) {
                    return None;
                }
                address.asked = now;
                address.flight = receiver.clone();
            }
            Entry::Vacant(new) => {
                new.insert(Address {
                    keys: None,
                    fetched: now,
                    asked: now,
                    failure: None,
                    flight: receiver.clone(),
                    is_fixed: request.is_fixed(),
                });
            }
        }
        drop(addresses);
        // A task, so that a sender who hangs up does not end it.
        let (source, request) = (self.clone(), request.clone());
        tokio::spawn(async move {
            let answer = tokio::time::timeout(timeout, source.ask(&request)).await;
            source.end(
                &id,
                &request,
                answer.unwrap_or_else(|_| Err("it took too long".into())),
            );
            drop(sender);
        });
        Some(receiver)
    }

    /// Whether a new address may be asked. It makes room by an old one without keys, or else by the one
    /// that was asked first, but never by a fixed one.
    fn has_room(&self, addresses: &mut HashMap<String, Address>, request: &KeyRequest) -> bool {
        if request.is_fixed() {
            return true;
        }
        let mut named = addresses.iter().filter(|(_, address)| !address.is_fixed);
        let is_new = |address: &Address| address.asked.elapsed() < self.pause;
        let new = named.clone().filter(|(_, address)| is_new(address)).count();
        if new >= MAX_NEW {
            return false;
        }
        if addresses.len() < MAX_ADDRESSES {
            return true;
        }
        let oldest = named
            .by_ref()
            .min_by_key(|(_, address)| (address.keys.is_some(), address.asked))
            .map(|(id, _)| id.clone());
        oldest.is_some_and(|oldest| addresses.remove(&oldest).is_some())
    }

    async fn ask(&self, request: &KeyRequest) -> Result<KeySet, BoxError> {
        let answer = (self.client)(request.to_http()?).await?;
        if answer.status() != StatusCode::OK {
            return Err(format!("it answered with {}", answer.status()).into());
        }
        if answer.body().len() > MAX_ANSWER {
            return Err("its answer is longer than 256 KiB".into());
        }
        Ok(KeySet::parse(std::str::from_utf8(answer.body())?)?)
    }

    pub(super) async fn visit(&self, url: &str) -> Result<(), BoxError> {
        let request = KeyRequest::get(url.to_owned()).to_http()?;
        let answer = tokio::time::timeout(self.timeout, (self.client)(request)).await;
        match answer
            .unwrap_or_else(|_| Err("it took too long".into()))?
            .status()
        {
            StatusCode::OK => Ok(()),
            status => Err(format!("it was answered with {status}").into()),
        }
    }

    fn end(&self, id: &str, request: &KeyRequest, answer: Result<KeySet, BoxError>) {
        let host = request.host();
        let mut addresses = self.lock();
        let Some(address) = addresses.get_mut(id) else {
            return;
        };
        match answer {
            Ok(keys) => {
                tracing::debug!(host, "fetched the keys of a provider");
                address.keys = Some(Arc::new(keys));
                address.fetched = Instant::now();
                address.failure = None;
            }
            Err(error) => {
                let error: &(dyn Error + 'static) = &*error;
                let failure = ErrorChain(error).to_string();
                tracing::warn!(
                    host,
                    error = failure,
                    has_old_keys = address.keys.is_some(),
                    "could not fetch the keys of a provider"
                );
                address.failure = Some(failure.into());
            }
        }
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").finish_non_exhaustive()
    }
}
