//! A delivery: what a verified request is known by.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// What [`Provider::verify`](crate::Provider::verify) found in an authentic request.
#[derive(Clone, Debug)]
pub struct Verified {
    pub(crate) delivery_id: DeliveryId,
    pub(crate) event_type: Option<String>,
    pub(crate) signed_at: Option<SystemTime>,
}

impl Verified {
    /// The provider's id of the delivery, the same on every retry.
    pub fn delivery_id(&self) -> &DeliveryId {
        &self.delivery_id
    }

    /// The type of the event, if the request names one.
    pub fn event_type(&self) -> Option<&str> {
        self.event_type.as_deref()
    }

    /// When the provider signed this attempt, if the signature covers a time.
    pub fn signed_at(&self) -> Option<SystemTime> {
        self.signed_at
    }
}

/// The id by which a provider's retries of one delivery are known.
///
/// It is not blank, has no control characters and at most 255 bytes. Whether it is
/// covered by the signature, [`Provider::signs_delivery_id`](crate::Provider::signs_delivery_id)
/// tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryId(Arc<str>);

impl DeliveryId {
    /// For ids that a `Source` has found usable.
    pub(crate) fn new(usable: String) -> Self {
        Self(usable.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The delivery that is being handled.
///
/// There is one in the extensions of every request that reaches a handler behind
/// [`IdempotentWebhook`](crate::IdempotentWebhook), and only there: a `Delivery` has
/// been verified. With the feature `axum` it is an extractor.
#[derive(Clone, Debug)]
pub struct Delivery {
    endpoint: Arc<str>,
    provider: Arc<str>,
    verified: Verified,
}

impl Delivery {
    pub(crate) fn new(endpoint: Arc<str>, provider: Arc<str>, verified: Verified) -> Self {
        Self {
            endpoint,
            provider,
            verified,
        }
    }

    /// The endpoint given to [`IdempotentWebhook::new`](crate::IdempotentWebhook::new):
    /// the namespace of the id.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The name of the provider, such as `stripe`.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The provider's id of the delivery, the same on every retry.
    pub fn id(&self) -> &DeliveryId {
        &self.verified.delivery_id
    }

    /// The type of the event, if the request names one.
    pub fn event_type(&self) -> Option<&str> {
        self.verified.event_type()
    }

    /// When the provider signed this attempt, if the signature covers a time.
    pub fn signed_at(&self) -> Option<SystemTime> {
        self.verified.signed_at
    }
}
