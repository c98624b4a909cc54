//! Recognizes handshakes that need a function, because data alone cannot describe them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response};

use super::{Handshake, HandshakeRequest};
use crate::provider::Secret;
use crate::provider::keys::KeySource;
use crate::provider::signature::same_secret::is_same;
use crate::tasks_and_errors::error_chain::BoxError;

type RecognizeFn = Arc<dyn Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync>;
type Kept = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
type KeepFn = Arc<dyn Fn(&Parts, Secret) -> Kept + Send + Sync>;

/// How long the application's confirmation function may take. A request that waits for the function is answered before
/// this time is over.
const MAX_CONFIRMING: Duration = Duration::from_secs(60);

/// The functions that recognize and complete a provider's handshakes.
#[derive(Clone, Default)]
pub(crate) struct Handshakes {
    unsigned: Vec<RecognizeFn>,
    signed: Vec<RecognizeFn>,
    keep_secret: Option<KeepFn>,
    /// The application's confirmation function, wrapped as if it fetched keys from the address.
    confirm: Option<KeySource>,
}

impl Handshakes {
    pub(crate) fn add_unsigned(
        &mut self,
        recognize: impl Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync + 'static,
    ) {
        self.unsigned.push(Arc::new(recognize));
    }

    pub(crate) fn add_signed(
        &mut self,
        recognize: impl Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync + 'static,
    ) {
        self.signed.push(Arc::new(recognize));
    }

    pub(crate) fn keep_secret<F>(
        &mut self,
        keep: impl Fn(&Parts, Secret) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.keep_secret = Some(Arc::new(move |head, secret| Box::pin(keep(head, secret))));
    }

    pub(crate) fn confirm<F>(&mut self, confirm: impl Fn(String) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let visit = move |request: Request<Bytes>| {
            let confirmed = confirm(request.uri().to_string());
            async move { confirmed.await.map(|()| Response::new(Bytes::new())) }
        };
        self.confirm = Some(KeySource::fetched(visit).timeout(MAX_CONFIRMING));
    }

    pub(crate) fn has_unsigned(&self) -> bool {
        !self.unsigned.is_empty()
    }

    pub(crate) fn has_signed(&self) -> bool {
        !self.signed.is_empty()
    }

    pub(crate) fn unsigned(&self, request: &HandshakeRequest<'_>) -> Option<Handshake> {
        self.unsigned
            .iter()
            .find_map(|recognize| recognize(request))
    }

    pub(crate) fn signed(&self, request: &HandshakeRequest<'_>) -> Option<Handshake> {
        self.signed.iter().find_map(|recognize| recognize(request))
    }

    /// Confirms a handshake, with the application's function or else with the client that fetches keys.
    pub(crate) async fn visit(&self, url: &str, keys: Option<&KeySource>) -> Result<(), BoxError> {
        match self.confirm.as_ref().or(keys) {
            Some(visitor) => visitor.visit(url).await,
            None => Err("nothing can confirm it: set `Provider::confirm_subscription`".into()),
        }
    }

    /// Lets the application store the secret of a handshake.
    pub(crate) async fn keep(&self, head: &Parts, secret: &Secret) -> Result<(), BoxError> {
        match &self.keep_secret {
            Some(keep) => keep(head, secret.clone()).await,
            None => Err("nothing can store it: set `Provider::secret_exchange`".into()),
        }
    }
}

impl fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshakes")
            .field("unsigned", &self.unsigned.len())
            .field("signed", &self.signed.len())
            .field("keeps_secret", &self.keep_secret.is_some())
            .field("confirms", &self.confirm.is_some())
            .finish()
    }
}

/// A HEAD request, with which some providers check that something answers at the URL.
pub(crate) fn probe(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    (request.method() == Method::HEAD).then(|| Handshake::empty("HEAD"))
}

/// The subscription check of WebSub and Meta, if it carries this token.
pub(crate) fn subscription(request: &HandshakeRequest<'_>, token: &Secret) -> Option<Handshake> {
    let is_asked = request.method() == Method::GET
        && request.query_value("hub.mode").as_deref() == Some("subscribe");
    let presented = request.query_value("hub.verify_token")?;
    let is_known = is_same(token.expose(), presented.as_bytes());
    let challenge = request.query_value("hub.challenge")?;
    (is_asked && is_known).then(|| Handshake::text("subscribe", challenge))
}
