use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Coinbase Commerce](https://docs.cdp.coinbase.com/commerce/api-arcitecture/webhooks-overview),
/// a product that is being wound down (not confirmed).
///
/// - Signature: `X-CC-Webhook-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.event.id`, covered by the signature. `$.attempt_number` changes the body
///   of a retry, so its digest would be wrong. Event type: `$.event.type`.
/// - Redelivery: for 3 days, at least hourly; the redelivery window is 30 days.
/// - Retry: `$.attempt_number` counts, so it is signed anew. That `$.event.id` stays is likely.
/// - Answer: Coinbase asks for 200, so every success gets it.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; Coinbase publishes none.
pub fn coinbase_commerce(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-cc-webhook-signature"));
    Provider::custom("coinbase-commerce")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event").then("id")))
        .event_type(Source::json(JsonPath::member("event").then("type")))
        .success_status(StatusCode::OK)
        .retry(Retry::signed_anew().likely().changes("`$.attempt_number`"))
}
