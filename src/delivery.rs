//! A delivery: what a verified request is known by.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::crypto::sha256_of;

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

    /// A key for what the handler calls in the course of this delivery, so that it
    /// happens once although the handler may run more than once.
    ///
    /// It is the same on every retry, in every process and every release of this crate,
    /// and different for every endpoint, delivery and `step`. Name each call by a step of
    /// its own: `refund`, or `mail to customer`. It is 64 lower-case hexadecimal digits,
    /// fit for a header such as `Idempotency-Key`, and tells nothing of what it was made
    /// from.
    ///
    /// ```no_run
    /// # use idempotent_webhook::Delivery;
    /// # async fn main_(client: reqwest::Client, delivery: Delivery) -> reqwest::Result<()> {
    /// client
    ///     .post("https://api.example.com/refunds")
    ///     .header("Idempotency-Key", delivery.idempotency_key("refund"))
    ///     .send()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn idempotency_key(&self, step: &str) -> String {
        let parts = [IDEMPOTENCY_KEY, &self.endpoint, self.id().as_str(), step];
        hex::encode(sha256_of(parts.map(str::as_bytes)))
    }
}

/// Sets these keys apart from any other digest of the same parts.
const IDEMPOTENCY_KEY: &str = "idempotent-webhook idempotency key";

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(endpoint: &str, id: &str) -> Delivery {
        let verified = Verified {
            delivery_id: DeliveryId::new(id.to_owned()),
            event_type: None,
            signed_at: None,
        };
        Delivery::new(endpoint.into(), "acme".into(), verified)
    }

    /// A release that changes them makes every step in flight happen twice.
    #[test]
    fn idempotency_keys_stay_what_they_are() {
        assert_eq!(
            delivery("billing", "evt_1").idempotency_key("refund"),
            "1daab56ef9714ad182b40276ff581fd0cee9459d9c1969a1e1f610390a0e25f1"
        );
        assert_eq!(
            delivery("é", "\u{1f980} 1").idempotency_key(""),
            "e962e17f063a736f876082a097d602c7e9d42b0497e05161369bbc7f12df71ed"
        );
    }

    proptest::proptest! {
        #[test]
        fn different_parts_make_different_keys(
            one in proptest::array::uniform3("[a:0-9é]{0,3}"),
            other in proptest::array::uniform3("[a:0-9é]{0,3}"),
        ) {
            let key = |[endpoint, id, step]: &[String; 3]| {
                delivery(endpoint, id).idempotency_key(step)
            };
            proptest::prop_assert_eq!(one == other, key(&one) == key(&other));
            let key = key(&one);
            proptest::prop_assert!(http::HeaderValue::from_str(&key).is_ok());
            proptest::prop_assert_eq!(key.len(), 64);
        }
    }
}
