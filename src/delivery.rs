//! A delivery: what a verified request is known by.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::crypto::sha256_of;
use crate::tenant::Tenant;

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

/// A question of the provider whether the endpoint is there, in an authentic request.
///
/// The layer answers it; whoever calls [`Provider::verify`](crate::Provider::verify)
/// answers with the challenge.
#[derive(Clone, Debug)]
pub struct Handshake {
    pub(crate) event_type: String,
    pub(crate) challenge: String,
}

impl Handshake {
    /// The event type that makes it a handshake.
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The text that the provider wants back, as plain text with status 200.
    pub fn challenge(&self) -> &str {
        &self.challenge
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
#[derive(Clone)]
pub struct Delivery(Arc<Inner>);

struct Inner {
    endpoint: Arc<str>,
    provider: Arc<str>,
    tenant: Option<Tenant>,
    verified: Verified,
}

/// What a delivery is known by within its endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeliveryKey {
    /// None where tenants do not matter.
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) id: DeliveryId,
}

impl Delivery {
    pub(crate) fn new(
        endpoint: Arc<str>,
        provider: Arc<str>,
        tenant: Option<Tenant>,
        verified: Verified,
    ) -> Self {
        Self(Arc::new(Inner {
            endpoint,
            provider,
            tenant,
            verified,
        }))
    }

    pub(crate) fn key(&self) -> DeliveryKey {
        DeliveryKey {
            tenant: self.separate_tenant().cloned(),
            id: self.id().clone(),
        }
    }

    /// The tenant as it stands in the database: empty if it is no part of the key.
    pub(crate) fn key_tenant(&self) -> &str {
        self.separate_tenant().map_or("", |name| name)
    }

    fn separate_tenant(&self) -> Option<&Arc<str>> {
        match &self.0.tenant {
            Some(tenant) if tenant.separate_ids => Some(&tenant.name),
            Some(_) | None => None,
        }
    }

    /// The endpoint given to [`IdempotentWebhook::new`](crate::IdempotentWebhook::new):
    /// the namespace of the id.
    pub fn endpoint(&self) -> &str {
        &self.0.endpoint
    }

    /// The name of the provider, such as `stripe`.
    pub fn provider(&self) -> &str {
        &self.0.provider
    }

    /// The tenant whose secret verified the delivery, where the provider has
    /// [`TenantSecrets`](crate::TenantSecrets).
    pub fn tenant(&self) -> Option<&str> {
        self.0.tenant.as_ref().map(|tenant| &*tenant.name)
    }

    /// The provider's id of the delivery, the same on every retry.
    pub fn id(&self) -> &DeliveryId {
        &self.0.verified.delivery_id
    }

    /// The type of the event, if the request names one.
    pub fn event_type(&self) -> Option<&str> {
        self.0.verified.event_type()
    }

    /// When the provider signed this attempt, if the signature covers a time.
    pub fn signed_at(&self) -> Option<SystemTime> {
        self.0.verified.signed_at
    }

    /// A key for what the handler calls in the course of this delivery, so that it
    /// happens once although the handler may run more than once.
    ///
    /// It is the same on every retry, in every process and every release of this crate,
    /// and different for every endpoint, delivery and `step`, and for every tenant where
    /// [`separate_ids`](crate::TenantSecrets::separate_ids) is on. Name each call by a step of
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
        let parts = [
            IDEMPOTENCY_KEY,
            &self.0.endpoint,
            self.key_tenant(),
            self.id().as_str(),
            step,
        ];
        hex::encode(sha256_of(parts.map(str::as_bytes)))
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("endpoint", &self.0.endpoint)
            .field("provider", &self.0.provider)
            .field("tenant", &self.0.tenant)
            .field("verified", &self.0.verified)
            .finish()
    }
}

/// Sets these keys apart from any other digest of the same parts.
const IDEMPOTENCY_KEY: &str = "idempotent-webhook idempotency key";

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(endpoint: &str, tenant: Option<&str>, id: &str) -> Delivery {
        let tenant = tenant.map(|name| Tenant {
            name: name.into(),
            separate_ids: true,
        });
        let verified = Verified {
            delivery_id: DeliveryId::new(id.to_owned()),
            event_type: None,
            signed_at: None,
        };
        Delivery::new(endpoint.into(), "acme".into(), tenant, verified)
    }

    /// A release that changes them makes every step in flight happen twice.
    #[test]
    fn idempotency_keys_stay_what_they_are() {
        assert_eq!(
            delivery("billing", None, "evt_1").idempotency_key("refund"),
            "30c6b153844da019aa847819d1a714e9d74bd3dc539209c059f824f3796c7f8a"
        );
        assert_eq!(
            delivery("é", Some("acme"), "\u{1f980} 1").idempotency_key(""),
            "6847adc9eea2ba291a45d2a3e952a0d5fb5e7053dd69f367056cd039d54b213a"
        );
    }

    proptest::proptest! {
        #[test]
        fn different_parts_make_different_keys(
            one in proptest::array::uniform4("[a:0-9é]{0,3}"),
            other in proptest::array::uniform4("[a:0-9é]{0,3}"),
        ) {
            let key = |[endpoint, tenant, id, step]: &[String; 4]| {
                delivery(endpoint, Some(tenant), id).idempotency_key(step)
            };
            proptest::prop_assert_eq!(one == other, key(&one) == key(&other));
            let key = key(&one);
            proptest::prop_assert!(http::HeaderValue::from_str(&key).is_ok());
            proptest::prop_assert_eq!(key.len(), 64);
        }
    }
}
