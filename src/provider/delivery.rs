//! A delivery: one webhook request and all its retries, and the key by which they are recognized as one delivery.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Serialize, Serializer};

use super::digest::sha256_of;

/// The longest id or name that can be part of a key, in bytes.
const MAX_LEN: usize = 255;

/// Why a text cannot be part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnusableText {
    Blank,
    TooLong,
    /// For example NUL, which Postgres cannot store in a text.
    ControlCharacter,
}

impl fmt::Display for UnusableText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank",
            Self::TooLong => "longer than 255 bytes",
            Self::ControlCharacter => "not free of control characters",
        })
    }
}

/// Checks a delivery id, the name of a tenant or an endpoint, or a version.
pub(crate) fn check_text(text: &str) -> Result<(), UnusableText> {
    if text.trim().is_empty() {
        Err(UnusableText::Blank)
    } else if text.len() > MAX_LEN {
        Err(UnusableText::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(UnusableText::ControlCharacter)
    } else {
        Ok(())
    }
}

/// The id that is the same for all retries of one delivery.
///
/// It is not blank, contains no control characters and is at most 255 bytes long.
/// [`Provider::signs_delivery_id`](crate::Provider::signs_delivery_id) says whether the signature covers it.
///
/// It can be bound to a sqlx query as text.
///
/// ```
/// # use idempotent_webhook::{DedupeTx, Delivery};
/// async fn insert(tx: &mut DedupeTx, delivery: &Delivery) -> sqlx::Result<()> {
///     sqlx::query("insert into payments (event_id) values ($1)")
///         .bind(delivery.id())
///         .execute(&mut **tx)
///         .await?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(Arc<str>);

impl DeliveryId {
    /// Creates an id from a text that has been checked, or that is only compared with other ids.
    pub(crate) fn new(text: String) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for DeliveryId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for DeliveryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The properties of an authentic delivery, as read by [`Provider::verify`](crate::Provider::verify).
#[derive(Clone, Debug)]
pub struct VerifiedDelivery {
    pub(crate) id: DeliveryId,
    pub(crate) event_type: Option<String>,
    pub(crate) signed_at: Option<SystemTime>,
    /// The position of the secret that verified the delivery, if there are several secrets.
    pub(crate) secret: Option<usize>,
    /// The version of the payload, or the mode of the event, if it is not the expected one.
    pub(crate) other_version: Option<String>,
}

impl VerifiedDelivery {
    /// The provider's id of the delivery, the same on every retry.
    pub fn id(&self) -> &DeliveryId {
        &self.id
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

/// The tenant that a delivery belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    /// Whether the name is part of the delivery's key.
    pub(crate) separate_ids: bool,
}

/// The delivery that a handler processes.
///
/// The layer puts it into the extensions of each request that it has verified. With the feature `axum`, it is also
/// an extractor.
///
/// ```
/// use axum::http::StatusCode;
/// use idempotent_webhook::{DedupeTx, Delivery, HandlerError};
///
/// async fn push(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
///     if delivery.event_type() == Some("push") {
///         sqlx::query("insert into pushes (delivery_id) values ($1)")
///             .bind(delivery.id())
///             .execute(&mut *tx)
///             .await?;
///     }
///     Ok(StatusCode::NO_CONTENT)
/// }
/// ```
#[derive(Clone)]
pub struct Delivery(Arc<Inner>);

struct Inner {
    endpoint: Arc<str>,
    provider: Arc<str>,
    tenant: Option<Tenant>,
    verified: VerifiedDelivery,
    past: Past,
}

/// What is known about earlier attempts.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// The number of this attempt.
    pub(crate) attempt: u32,
    pub(crate) first_received_at: SystemTime,
    pub(crate) reprocessed: bool,
    pub(crate) reconciled: bool,
    pub(crate) rehearsed: bool,
}

/// The key of a delivery within its endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeliveryKey {
    /// `None` unless the tenant is part of the key.
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) id: DeliveryId,
}

impl Delivery {
    pub(crate) fn new(
        endpoint: Arc<str>,
        provider: Arc<str>,
        tenant: Option<Tenant>,
        verified: VerifiedDelivery,
    ) -> Self {
        Self(Arc::new(Inner {
            endpoint,
            provider,
            tenant,
            verified,
            past: Past {
                attempt: 1,
                first_received_at: SystemTime::now(),
                reprocessed: false,
                reconciled: false,
                rehearsed: false,
            },
        }))
    }

    /// The same delivery with other data about its earlier attempts.
    pub(crate) fn with_past(self, past: Past) -> Self {
        let inner = &*self.0;
        Self(Arc::new(Inner {
            endpoint: inner.endpoint.clone(),
            provider: inner.provider.clone(),
            tenant: inner.tenant.clone(),
            verified: inner.verified.clone(),
            past,
        }))
    }

    /// The same delivery, marked as processed again by an operator.
    pub(crate) fn reprocessed(self) -> Self {
        let past = Past {
            reprocessed: true,
            ..self.0.past.clone()
        };
        self.with_past(past)
    }

    /// The same delivery, marked as found in the provider's list of events.
    pub(crate) fn reconciled(self) -> Self {
        let past = Past {
            reconciled: true,
            ..self.0.past.clone()
        };
        self.with_past(past)
    }

    pub(crate) fn key(&self) -> DeliveryKey {
        DeliveryKey {
            tenant: self.separate_tenant().cloned(),
            id: self.id().clone(),
        }
    }

    /// The tenant as the database stores it in the delivery's key. It is empty unless the tenant is part of the key
    /// ([`separate_ids`](crate::TenantSecrets::separate_ids)). Pass it to the [claim of other
    /// drivers](crate::documentation::drivers).
    pub fn key_tenant(&self) -> &str {
        self.separate_tenant().map_or("", |name| name)
    }

    fn separate_tenant(&self) -> Option<&Arc<str>> {
        match &self.0.tenant {
            Some(tenant) if tenant.separate_ids => Some(&tenant.name),
            Some(_) | None => None,
        }
    }

    /// The endpoint that was given to [`IdempotentWebhook::new`](crate::IdempotentWebhook::new). It is the
    /// namespace of the id.
    pub fn endpoint(&self) -> &str {
        &self.0.endpoint
    }

    /// The name of the provider, such as `stripe`.
    pub fn provider(&self) -> &str {
        &self.0.provider
    }

    /// The tenant whose secret verified the delivery, if the provider has [`TenantSecrets`](crate::TenantSecrets).
    pub fn tenant(&self) -> Option<&str> {
        self.0.tenant.as_ref().map(|tenant| &*tenant.name)
    }

    /// The provider's id of the delivery, the same on every retry.
    pub fn id(&self) -> &DeliveryId {
        &self.0.verified.id
    }

    /// The type of the event, if the request names one.
    pub fn event_type(&self) -> Option<&str> {
        self.0.verified.event_type()
    }

    /// When the provider signed this attempt, if the signature covers a time.
    pub fn signed_at(&self) -> Option<SystemTime> {
        self.0.verified.signed_at
    }

    /// The number of this attempt.
    ///
    /// It is 1 for a request from the provider, and for the attempt that starts when the layer accepts a delivery.
    /// Recovery attempts ([`Recovery`](crate::Recovery)) continue the count of all earlier attempts.
    pub fn attempt(&self) -> u32 {
        self.0.past.attempt
    }

    /// When the delivery was first received, as far as is known.
    ///
    /// For a request from the provider, it is the time of the request. For a recovery attempt
    /// ([`Recovery`](crate::Recovery)), it is the time of the first request that was kept, or the time at which
    /// [`Reconcile`](crate::Reconcile) found the delivery.
    pub fn first_received_at(&self) -> SystemTime {
        self.0.past.first_received_at
    }

    /// Whether the delivery was processed before, and is now processed again because an operator called
    /// [`Endpoint::reprocess`](crate::Endpoint::reprocess).
    ///
    /// Its [idempotency keys](Self::idempotency_key) are the same as when it was first processed. If these keys are
    /// unique in one of your tables, insert with `on conflict do nothing`.
    pub fn is_reprocessed(&self) -> bool {
        self.0.past.reprocessed
    }

    /// Whether [`Reconcile`](crate::Reconcile) found the delivery in the provider's list of events. Such a delivery did
    /// not arrive as a request.
    ///
    /// Its body comes from the list, and its only headers are those that the list gives.
    pub fn is_reconciled(&self) -> bool {
        self.0.past.reconciled
    }

    /// Whether this is a rehearsal ([`Recovery::rehearse`](crate::Recovery::rehearse)): everything that the handler
    /// does in its transaction is rolled back, regardless of its answer.
    ///
    /// Other effects are not undone, so a handler that calls another API must skip the call:
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use idempotent_webhook::{DedupeTx, Delivery, HandlerError};
    ///
    /// # async fn send_receipt(_: String) -> std::io::Result<()> { Ok(()) }
    /// async fn paid(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    ///     sqlx::query("update orders set status = 'paid'").execute(&mut *tx).await?;
    ///     if !delivery.is_rehearsal() {
    ///         send_receipt(delivery.idempotency_key("receipt")).await?;
    ///     }
    ///     Ok(StatusCode::OK)
    /// }
    /// ```
    pub fn is_rehearsal(&self) -> bool {
        self.0.past.rehearsed
    }

    /// An idempotency key for a call to another API, so that the call takes effect only once although the handler
    /// may run more than once.
    ///
    /// The key is the same on every attempt, in every process and in every release of this crate. It differs by
    /// endpoint, delivery and `step`, and also by tenant if [`separate_ids`](crate::TenantSecrets::separate_ids) is on.
    /// Give each call its own step, such as `refund` or `mail to customer`. The key consists of 64 lower-case
    /// hexadecimal digits, fits into a header such as `Idempotency-Key`, and does not reveal its parts.
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

/// Separates idempotency keys from other digests of the same parts.
const IDEMPOTENCY_KEY: &str = "idempotent-webhook idempotency key";

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(endpoint: &str, tenant: Option<&str>, id: &str) -> Delivery {
        let tenant = tenant.map(|name| Tenant {
            name: name.into(),
            separate_ids: true,
        });
        let verified = VerifiedDelivery {
            id: DeliveryId::new(id.to_owned()),
            event_type: None,
            signed_at: None,
            secret: None,
            other_version: None,
        };
        Delivery::new(endpoint.into(), "acme".into(), tenant, verified)
    }

    /// If a release changed the keys, a call that another API has already carried out would take effect again on the
    /// next attempt.
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
