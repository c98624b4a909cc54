use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Coinbase Commerce](https://docs.cdp.coinbase.com/commerce/api-arcitecture/webhooks-overview),
/// a product that is being wound down (not confirmed).
///
/// - Signature: `X-CC-Webhook-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.event.id`, covered by the signature. The body's digest would be wrong, because
///   `$.attempt_number` changes the body of a retry. Event type: `$.event.type`.
/// - Groups: `charge:*`.
#[doc = include_str!("facts/coinbase-commerce.md")]
pub fn coinbase_commerce(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-cc-webhook-signature"));
    Provider::custom("coinbase-commerce")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event").then("id")))
        .event_type(Source::json(JsonPath::member("event").then("type")))
        .payload_version(Source::json(JsonPath::member("event").then("api_version")))
        .event_names_like(["charge:created"])
        .success_status(StatusCode::OK)
}
