//! Fetched keys, and how often they are fetched.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::account::{Account, Fetch, Flight};
use super::address::KeyRequest;
use super::client::{Client, KeyClient, MAX_ANSWER};
use super::seen::Seen;
use super::set::KeySet;
use super::visits::Visits;
use super::wanted_key::Wanted;
use crate::provider::signature::{KeyNotFetched, SignatureError};
use crate::tasks_and_errors::error_chain::{BoxError, ErrorChain};
use crate::tasks_and_errors::panic::{self, catch_panic};

/// How long keys stay in use while they cannot be fetched again.
const MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Fetched keys, by their address. Clones share them.
#[derive(Clone)]
pub(super) struct Fetched {
    client: Client,
    state: Arc<Mutex<State>>,
    visits: Visits,
    pub(super) max_age: Duration,
    pub(super) pause: Duration,
    pub(super) timeout: Duration,
}

#[derive(Default)]
struct State {
    accounts: HashMap<String, Account>,
    seen: Seen,
}

impl Fetched {
    pub(super) fn new(client: impl KeyClient) -> Self {
        let client = Arc::new(client);
        Self {
            client: Arc::new(move |request| {
                let client = client.clone();
                Box::pin(async move {
                    match catch_panic(async { client.fetch(request).await }).await {
                        Ok(answer) => answer,
                        Err(payload) => Err(format!(
                            "the client panicked: {}",
                            panic::message(&*payload)
                        )
                        .into()),
                    }
                })
            }),
            state: Arc::default(),
            visits: Visits::default(),
            max_age: Duration::from_secs(60 * 60),
            pause: Duration::from_secs(60),
            timeout: Duration::from_secs(3),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long fetched keys may be used.
    fn max_stale(&self) -> Duration {
        self.max_age.max(MAX_STALE)
    }

    /// The keys at an address, if they include the wanted key. Otherwise, an error that contains the request to fetch
    /// them. Keys that were already fetched for this webhook request are used as they are.
    pub(super) fn look_up(
        &self,
        request: &KeyRequest,
        wanted: Wanted<'_>,
        was_fetched: bool,
    ) -> Result<Arc<KeySet>, SignatureError> {
        let needed =
            |reason: &str| SignatureError::KeyNotFetched(KeyNotFetched::new(request, reason));
        const NOT_ASKED: &str = "it was not asked yet, or other addresses come first";
        let mut state = self.lock();
        let Some(account) = state.accounts.get_mut(&request.bounds()) else {
            return Err(needed(NOT_ASKED));
        };
        let id = request.id();
        let may_check_again = account.may_check_again(self.pause);
        let Some(known) = account.known(&id) else {
            return Err(needed(account.failure(&id).unwrap_or(NOT_ASKED)));
        };
        if known.fetched.elapsed() >= self.max_stale() {
            let reason = known.failure.as_deref();
            return Err(needed(reason.unwrap_or("the keys are older than a day")));
        }
        if let Wanted::Changed = wanted {
            let may_be_asked = may_check_again || known.flight().is_some();
            return match may_be_asked && !was_fetched {
                true => Err(needed("the key may have changed")),
                false => Ok(known.keys.clone()),
            };
        }
        if wanted.is_in(&known.keys) {
            let is_old = known.fetched.elapsed() >= self.max_age;
            return match is_old && !was_fetched && known.may_be_asked(self.pause) {
                true => Err(needed("the keys are old")),
                false => Ok(known.keys.clone()),
            };
        }
        match &known.failure {
            Some(failure) => Err(needed(failure)),
            None if was_fetched => Err(SignatureError::UnknownKey),
            None => Err(needed("the key is not among those that were fetched")),
        }
    }

    /// Waits for the fetches of several addresses, and starts the fetches that are not under way. Returns, for each
    /// address, whether there was a fetch.
    pub(super) async fn fetch(&self, requests: &[&KeyRequest], until: Instant) -> Vec<bool> {
        let mut flights: Vec<_> = requests
            .iter()
            .map(|request| self.flight(request))
            .collect();
        // The fetches run at the same time, so one deadline is enough for all of them.
        let all_end = async {
            for flight in flights.iter_mut().flatten() {
                // `changed` fails when the sender is dropped, at the end of the fetch.
                let _ = flight.changed().await;
            }
        };
        let _ = tokio::time::timeout_at(until, all_end).await;
        flights.iter().map(Option::is_some).collect()
    }

    /// The fetch of an address. `None` if the address may not be asked now.
    fn flight(&self, request: &KeyRequest) -> Option<Flight> {
        let mut state = self.lock();
        let State { accounts, seen } = &mut *state;
        let bounds = request.bounds();
        if !accounts.contains_key(&bounds) {
            // Tenants come and go, and each may have its own account, so drop idle accounts.
            let max_stale = self.max_stale();
            accounts.retain(|_, account| !account.is_idle(max_stale));
        }
        let account = accounts.entry(bounds).or_default();
        let id = request.id();
        if let Some(known) = account.known(&id) {
            if known.may_be_asked(self.pause) {
                self.spawn(known.begin(request));
            }
            return known.flight().cloned();
        }
        account.name(request, seen);
        self.ask_next(account);
        account.flight(&id)
    }

    /// Asks the waiting addresses that may be asked now.
    fn ask_next(&self, account: &mut Account) {
        while let Some(fetch) = account.next(self.pause) {
            self.spawn(fetch);
        }
    }

    /// Asks an address in a task, so that a dropped request does not end the fetch.
    fn spawn(&self, fetch: Fetch) {
        let source = self.clone();
        tokio::spawn(async move {
            let Fetch { request, sender } = fetch;
            let answer = tokio::time::timeout(source.timeout, source.ask(&request)).await;
            source.end(
                &request,
                answer.unwrap_or_else(|_| Err("it took too long".into())),
            );
            drop(sender);
        });
    }

    /// The keys at an address. `None` if the provider does not have such a key, or no longer has it.
    async fn ask(&self, request: &KeyRequest) -> Result<Option<KeySet>, BoxError> {
        const GONE: [StatusCode; 2] = [StatusCode::NOT_FOUND, StatusCode::GONE];
        let answer = (self.client)(request.to_http()?).await?;
        if request.is_of_one_key() && GONE.contains(&answer.status()) {
            return Ok(None);
        }
        if answer.status() != StatusCode::OK {
            return Err(format!("it answered with {}", answer.status()).into());
        }
        if answer.body().len() > MAX_ANSWER {
            return Err("its answer is longer than 256 KiB".into());
        }
        Ok(Some(KeySet::read(std::str::from_utf8(answer.body())?)?))
    }

    fn end(&self, request: &KeyRequest, answer: Result<Option<KeySet>, BoxError>) {
        let host = request.host();
        let answer = answer.map_err(|error| {
            let error: &(dyn Error + 'static) = &*error;
            ErrorChain(error).to_string()
        });
        match &answer {
            Ok(Some(_)) => tracing::debug!(host, "fetched the keys of a provider"),
            Ok(None) => tracing::warn!(host, "a provider has no such key"),
            Err(error) => tracing::warn!(host, error, "could not fetch the keys of a provider"),
        }
        let mut state = self.lock();
        let account = state.accounts.entry(request.bounds()).or_default();
        match answer {
            Ok(Some(keys)) => account.learn(request.id(), keys),
            Ok(None) => account.forget(request.id(), self.pause),
            Err(reason) => account.fail(request.id(), reason.into(), self.pause),
        }
        self.ask_next(account);
    }

    /// Visits an address. Requests that arrive at the same time, or shortly after, share one visit.
    pub(super) async fn visit(&self, url: &str) -> Result<(), BoxError> {
        self.visits.visit(url, &self.client, self.timeout).await
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
    use bytes::Bytes;
    use http::{Request, Response};

    #[tokio::test(start_paused = true)]
    async fn accounts_that_are_not_used_any_more_are_forgotten() {
        let fetched = Fetched::new(|request: Request<Bytes>| async move {
            let status = if request.uri().path() == "/known" {
                200
            } else {
                404
            };
            let keys = Bytes::from_static(include_bytes!("../../../tests/keys/p256.pem"));
            Ok(Response::builder().status(status).body(keys)?)
        });
        let ask = async |path: &str, account: &str| {
            let request = KeyRequest::get(format!("https://acme.test{path}")).account(account);
            let until = Instant::now() + fetched.timeout;
            fetched.fetch(&[&request], until).await;
            fetched.lock().accounts.len()
        };
        assert_eq!(ask("/known", "a").await, 1);
        assert_eq!(ask("/unknown", "b").await, 2);
        assert_eq!(ask("/known", "c").await, 3);
        // Failures are forgotten once the address may be asked again, and keys once they are no longer used.
        tokio::time::advance(fetched.pause).await;
        assert_eq!(ask("/known", "d").await, 3);
        tokio::time::advance(MAX_STALE).await;
        assert_eq!(ask("/known", "e").await, 1);
    }

    #[tokio::test]
    async fn keys_in_an_answer_that_is_too_long_are_not_read() {
        for (length, expected) in [(MAX_ANSWER, true), (2 * MAX_ANSWER, false)] {
            let fetched = Fetched::new(move |_: Request<Bytes>| async move {
                let keys = include_str!("../../../tests/keys/p256.pem");
                let rest = " ".repeat(length - keys.len());
                Ok(Response::new(format!("{keys}{rest}").into()))
            });
            let asked = fetched.ask(&KeyRequest::get("https://acme.test/")).await;
            assert_eq!(asked.is_ok(), expected, "{length}");
        }
    }
}
