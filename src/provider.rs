//! Providers: how each one signs, names and retries its deliveries.

mod awardee;
mod github;
mod linear;
mod shopify;
mod slack;
mod standard_webhooks;
mod stripe;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::request::Parts;

use crate::delivery::{DeliveryId, Handshake, Verified};
use crate::secret::Secrets;
use crate::signature::{SignatureError, SignatureScheme, Tolerance};
use crate::source::{Identified, Identity, IdentityError, Source};
use crate::tenant::Keys;

const MIB: usize = 1024 * 1024;
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How a provider signs, identifies and redelivers its webhooks.
///
/// The presets and [`custom`](Self::custom) make values of this same type, so
/// whatever a preset says can be adjusted:
///
/// ```
/// use std::time::Duration;
/// use idempotent_webhook::{Provider, Secret, Tolerance};
///
/// # fn main() -> Result<(), idempotent_webhook::BlankSecret> {
/// let stripe = Provider::stripe(Secret::new("whsec_…")?)
///     .tolerance(Tolerance::two_sided(Duration::from_secs(60)))
///     .body_limit(512 * 1024);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Provider {
    name: Arc<str>,
    scheme: Arc<dyn SignatureScheme>,
    keys: Keys,
    tolerance: Tolerance,
    identity: Identity,
    body_limit: usize,
    response_deadline: Duration,
    redelivery_window: Duration,
}

impl Provider {
    /// Begins a provider that has no preset. The name appears in [`Delivery::provider`]
    /// and in logs.
    ///
    /// [`Delivery::provider`]: crate::Delivery::provider
    ///
    /// ```
    /// use http::HeaderName;
    /// use idempotent_webhook::{HmacSha256, Provider, Secret, Source};
    ///
    /// # fn main() -> Result<(), idempotent_webhook::BlankSecret> {
    /// let acme = Provider::custom("acme")
    ///     .signature(
    ///         HmacSha256::hex(HeaderName::from_static("x-acme-signature")).prefix("sha256="),
    ///         Secret::new("a secret")?,
    ///     )
    ///     .delivery_id(Source::header(HeaderName::from_static("x-acme-delivery")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Its defaults are a [tolerance](Self::tolerance) of 5 minutes to both sides, a
    /// [body limit](Self::body_limit) of 2 MiB, a
    /// [response deadline](Self::response_deadline) of 10 seconds and a
    /// [redelivery window](Self::redelivery_window) of 30 days.
    pub fn custom(name: impl Into<Arc<str>>) -> CustomProvider {
        CustomProvider { name: name.into() }
    }

    /// Where the delivery id is. It must be the same on every retry and different for
    /// every delivery.
    #[must_use]
    pub fn delivery_id(mut self, source: Source) -> Self {
        self.identity = self.identity.with_id(source);
        self
    }

    /// Where the event type is.
    #[must_use]
    pub fn event_type(mut self, source: Source) -> Self {
        self.identity = self.identity.with_event_type(source);
        self
    }

    /// A request without a delivery id whose event type is this one is no delivery but a
    /// question whether the endpoint is there. After verification it is answered with 200
    /// and the `challenge` as plain text, without a claim, and does not reach the handler.
    #[must_use]
    pub fn handshake(
        mut self,
        event_type: impl Into<Cow<'static, str>>,
        challenge: Source,
    ) -> Self {
        self.identity = self.identity.with_handshake(event_type.into(), challenge);
        self
    }

    /// How old a signature may be. Without effect on schemes that sign no time.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The largest body that is accepted, in bytes.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How long the provider waits for the response before it counts the attempt as
    /// failed. A duplicate of a delivery in flight waits for at most three fifths of
    /// it, unless [`IdempotentWebhook::in_flight_wait`] says otherwise.
    ///
    /// [`IdempotentWebhook::in_flight_wait`]: crate::IdempotentWebhook::in_flight_wait
    #[must_use]
    pub fn response_deadline(mut self, deadline: Duration) -> Self {
        self.response_deadline = deadline;
        self
    }

    /// How long after the first attempt the provider may deliver once more, by itself
    /// or at somebody's request. [`prune`](crate::prune) refuses to forget any sooner.
    ///
    /// At most 1000 years.
    #[must_use]
    pub fn redelivery_window(mut self, window: Duration) -> Self {
        self.redelivery_window = window.min(365_000 * DAY);
        self
    }

    /// The provider's name, such as `stripe`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the signature covers the delivery id.
    ///
    /// If it does not, whoever has captured one signed request can send it again under
    /// a fresh id.
    pub fn signs_delivery_id(&self) -> bool {
        self.identity.id_is_signed(self.scheme.signed_headers())
    }

    /// Verifies a request that was received at `now`, and identifies its delivery.
    ///
    /// `body` is the raw body, to the byte. This needs no database and reads no clock.
    ///
    /// # Errors
    ///
    /// [`VerifyError::Signature`] if the request is not authentic or not recent,
    /// [`VerifyError::Identity`] if it is, but has no usable delivery id,
    /// [`VerifyError::Handshake`] if it is a [`handshake`](Self::handshake).
    ///
    /// A provider with [`TenantSecrets`](crate::TenantSecrets) has no secrets without
    /// looking them up: [`verify_with`](Self::verify_with) takes what was found.
    pub fn verify(
        &self,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        self.verify_as(self.keys.fixed(), head, body, now)
    }

    /// Like [`verify`](Self::verify), with these secrets instead of the provider's own.
    ///
    /// # Errors
    ///
    /// As [`verify`](Self::verify).
    pub fn verify_with(
        &self,
        secrets: &Secrets,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        self.verify_as(Some(secrets), head, body, now)
    }

    /// Without secrets nothing is authentic, which takes as long to find as that a signature
    /// is wrong, so as not to tell which tenants there are.
    pub(crate) fn verify_as(
        &self,
        secrets: Option<&Secrets>,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let Some(secrets) = secrets else {
            let _ = self.scheme.verify(head, body, &Secrets::nobodys());
            return Err(SignatureError::NoSecret.into());
        };
        let signed_at = self.scheme.verify(head, body, secrets)?;
        if let Some(signed_at) = signed_at {
            self.tolerance.check(signed_at, now)?;
        }
        match self.identity.read(head, body)? {
            Identified::Delivery { id, event_type } => Ok(Verified {
                delivery_id: DeliveryId::new(id),
                event_type,
                signed_at,
            }),
            Identified::Handshake {
                event_type,
                challenge,
            } => Err(VerifyError::Handshake(Handshake {
                event_type,
                challenge,
            })),
        }
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Refuses what no body could make authentic, before the body is read.
    pub(crate) fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.scheme.check_head(head)
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    pub(crate) fn max_body(&self) -> usize {
        self.body_limit
    }

    pub(crate) fn default_in_flight_wait(&self) -> Duration {
        self.response_deadline.saturating_mul(3) / 5
    }

    pub(crate) fn max_redelivery(&self) -> Duration {
        self.redelivery_window
    }
}

/// A provider in the making that still needs its signature scheme.
#[derive(Clone, Debug)]
#[must_use = "it is not a provider yet: it needs a signature scheme and a delivery id"]
pub struct CustomProvider {
    name: Arc<str>,
}

impl CustomProvider {
    /// How the provider signs, and with which secret or secrets.
    pub fn signature(self, scheme: impl SignatureScheme, keys: impl Into<Keys>) -> SignedProvider {
        SignedProvider {
            name: self.name,
            scheme: Arc::new(scheme),
            keys: keys.into(),
        }
    }
}

/// A provider in the making that still needs the place of its delivery id.
#[derive(Clone, Debug)]
#[must_use = "it is not a provider yet: it needs a delivery id"]
pub struct SignedProvider {
    name: Arc<str>,
    scheme: Arc<dyn SignatureScheme>,
    keys: Keys,
}

impl SignedProvider {
    /// Where the delivery id is. It must be the same on every retry and different for
    /// every delivery.
    pub fn delivery_id(self, source: Source) -> Provider {
        Provider {
            name: self.name,
            scheme: self.scheme,
            keys: self.keys,
            tolerance: Tolerance::two_sided(Duration::from_secs(300)),
            identity: Identity::new(source),
            body_limit: 2 * MIB,
            response_deadline: Duration::from_secs(10),
            redelivery_window: 30 * DAY,
        }
    }
}

/// Why [`Provider::verify`] refused a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum VerifyError {
    /// It is not authentic, or not recent.
    Signature(SignatureError),
    /// It is authentic, but has no usable delivery id.
    Identity(IdentityError),
    /// It is authentic, but no delivery.
    Handshake(Handshake),
}

impl From<SignatureError> for VerifyError {
    fn from(error: SignatureError) -> Self {
        Self::Signature(error)
    }
}

impl From<IdentityError> for VerifyError {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature(_) => "the request is not authentic",
            Self::Identity(_) => "the delivery cannot be identified",
            Self::Handshake(_) => "the request is a handshake, not a delivery",
        })
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Signature(error) => Some(error),
            Self::Identity(error) => Some(error),
            Self::Handshake(_) => None,
        }
    }
}
