//! Where the keys of a provider come from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::address::KeyRequest;
use super::client::KeyClient;
use super::fetched::Fetched;
use super::set::{KeySet, KeySetError};
use super::wanted_key::Wanted;
use crate::provider::signature::{KeyNotFetched, SignatureError};
use crate::tasks_and_errors::error_chain::BoxError;

/// The source of a provider's public keys: given once, or fetched from the address that the preset knows.
///
/// [The module](crate::provider::keys) says when keys are fetched. [`Provider::keys`](crate::Provider::keys) takes the
/// source. Clones share the keys. So an application needs only one source for all providers whose keys the same client
/// may fetch. Set the times, such as [`max_age`](Self::max_age), before cloning the source.
#[derive(Clone)]
pub struct KeySource(Kind);

#[derive(Clone)]
enum Kind {
    Given(Arc<KeySet>),
    Fetched(Fetched),
}

impl KeySource {
    /// The keys in this text, regardless of the address.
    ///
    /// This is for tests, and for keys that you fetch by other means. The text is what the address would answer, in
    /// a form that [`KeySet::parse`] reads.
    ///
    /// # Errors
    ///
    /// [`KeySetError`] if the text contains no key.
    pub fn given(keys: &str) -> Result<Self, KeySetError> {
        KeySet::parse(keys).map(Self::from)
    }

    /// Keys that this client fetches: a `reqwest::Client`, or a function as shown in [`KeyClient`].
    pub fn fetched(client: impl KeyClient) -> Self {
        Self(Kind::Fetched(Fetched::new(client)))
    }

    /// Keys that a built-in client fetches. The client uses only `https`. Needs the feature `reqwest`.
    ///
    /// # Errors
    ///
    /// An error of `reqwest` if the client cannot be created, because the system has no certificates.
    #[cfg(feature = "reqwest")]
    pub fn https() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .https_only(true)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self::fetched(client))
    }

    /// The age after which keys are fetched again. Default: an hour. It has no effect on given keys.
    #[must_use]
    pub fn max_age(self, age: Duration) -> Self {
        self.with(|fetched| fetched.max_age = age)
    }

    /// The shortest time from one fetch of an address to the next. Default: a minute. If a fetch fails and no keys are
    /// known, the next fetch may start after a sixth of this time. It has no effect on given keys.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        self.with(|fetched| fetched.pause = pause)
    }

    /// How long a fetch may take, and how long a request may wait for it. Default: 3 seconds. It has no effect on
    /// given keys.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|fetched| fetched.timeout = timeout)
    }

    fn with(mut self, set: impl FnOnce(&mut Fetched)) -> Self {
        if let Kind::Fetched(fetched) = &mut self.0 {
            set(fetched);
        }
        self
    }

    /// The keys at an address, if they include the wanted key.
    pub(crate) fn look_up(
        &self,
        request: &KeyRequest,
        wanted: Wanted<'_>,
        was_fetched: bool,
    ) -> Result<Arc<KeySet>, SignatureError> {
        match &self.0 {
            Kind::Given(keys) if wanted.is_in(keys) => Ok(keys.clone()),
            Kind::Given(_) => Err(SignatureError::UnknownKey),
            Kind::Fetched(fetched) => fetched.look_up(request, wanted, was_fetched),
        }
    }

    /// Until when a request may wait for keys if its answer is due within `response_deadline`.
    pub(crate) fn wait_until(&self, response_deadline: Duration) -> Instant {
        let half = response_deadline / 2;
        Instant::now()
            + match &self.0 {
                Kind::Given(_) => half,
                Kind::Fetched(fetched) => half.min(fetched.timeout),
            }
    }

    /// Fetches all keys that a request needs, at the same time. Waits no longer than `until`; the fetches continue
    /// after that. Returns, for each address, whether it could be asked.
    pub(crate) async fn fetch_until(
        &self,
        needed: impl Iterator<Item = &KeyNotFetched>,
        until: Instant,
    ) -> Vec<bool> {
        match &self.0 {
            Kind::Given(_) => needed.map(|_| false).collect(),
            Kind::Fetched(fetched) => {
                let requests: Vec<_> = needed.map(KeyNotFetched::request).collect();
                fetched.fetch(&requests, until).await
            }
        }
    }

    /// Whether keys are fetched.
    pub(crate) fn is_fetched(&self) -> bool {
        matches!(self.0, Kind::Fetched(_))
    }

    /// Visits the address that confirms a handshake.
    pub(crate) async fn visit(&self, url: &str) -> Result<(), BoxError> {
        match &self.0 {
            Kind::Fetched(fetched) => fetched.visit(url).await,
            Kind::Given(_) => {
                Err("there is no client: set `Provider::confirm_subscription`".into())
            }
        }
    }

    /// The keys, if they are given.
    #[cfg(any(feature = "testing", feature = "x509"))]
    pub(crate) fn get_given(&self) -> Option<&Arc<KeySet>> {
        match &self.0 {
            Kind::Given(keys) => Some(keys),
            Kind::Fetched(_) => None,
        }
    }
}

impl From<KeySet> for KeySource {
    fn from(keys: KeySet) -> Self {
        Self(Kind::Given(Arc::new(keys)))
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Given(_) => "KeySource(given)",
            Kind::Fetched(_) => "KeySource(fetched)",
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Request, Response};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_at_most_half_of_the_time_in_which_it_is_answered() {
        let client = async |_: Request<Bytes>| Ok(Response::new(Bytes::new()));
        let keys = KeySource::fetched(client).timeout(Duration::from_secs(3));
        for (deadline, expected) in [(4, 2), (10, 3)] {
            let until = keys.wait_until(Duration::from_secs(deadline));
            assert_eq!(until, Instant::now() + Duration::from_secs(expected));
        }
    }
}
