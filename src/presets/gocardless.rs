use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [GoCardless](https://developer.gocardless.com/api-reference/#webhooks-overview).
///
/// - Signature: `Webhook-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.meta.webhook_id`, covered by the signature. It is the id of the batch; each of the up to 250
///   events in a batch has its own `id`. A batch without `$.meta.webhook_id`, which GoCardless's SDKs accept, is
///   refused. If your batches lack it, add [`Source::body_digest`] with [`or`](Source::or). Event type: none; each
///   event has a `resource_type` and an `action`.
#[doc = include_str!("facts/gocardless.md")]
pub fn gocardless(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("webhook-signature"));
    Provider::custom("gocardless")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("meta").then("webhook_id")))
        .rejection_status(StatusCode::from_u16(498).unwrap_or(StatusCode::UNAUTHORIZED))
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(10))
}
