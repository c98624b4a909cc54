use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Dwolla](https://developers.dwolla.com/docs/balance/webhooks).
///
/// - Signature: `X-Request-Signature-SHA-256: <hex>`, an HMAC-SHA256 of the body under the secret that
///   was given to the webhook subscription.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.id`, the id of the event, covered by the signature. Two webhook subscriptions likely
///   get the same one, so give each route an endpoint name of its own. Event type: `$.topic`.
/// - Redelivery: 8 times over 72 hours after any answer but a 2xx, and on request, for a time that is
///   not published; the redelivery window is 30 days.
/// - Retry: the same event (likely).
/// - Answer: any 2xx.
/// - Response deadline: 10 seconds.
/// - Switched off: after 400 failures in a row, and 24 hours without a success.
/// - Handshake: none.
/// - Body limit: 2 MiB; Dwolla publishes none.
pub fn dwolla(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-request-signature-sha-256"));
    Provider::custom("dwolla")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("topic")))
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::identical().likely())
}
