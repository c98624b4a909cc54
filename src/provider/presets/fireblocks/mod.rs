use std::time::Duration;

use http::StatusCode;

use self::scheme::Fireblocks;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Fireblocks](https://developers.fireblocks.com/docs/webhooks-notifications). Feature `rsa`.
///
/// - Signature: `Fireblocks-Webhook-Signature`, a detached JSON Web Signature with RS512 of the
///   body. If it is absent, `Fireblocks-Signature: <base64>`, an RSA signature with SHA-512 of the
///   body. The secret is the public key in PEM. It differs by region and for sandboxes; that of the
///   first kind comes from a key set, from which this crate fetches nothing.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.eventType`.
/// - Redelivery: 10 attempts over about 8 hours, and on request later; the redelivery window is
///   30 days.
/// - Retry: not documented; the id likely stays.
/// - Answer: any 2xx (not confirmed). A 4xx but 408 and 429 is not retried, so every failure gets
///   503.
/// - Response deadline: Fireblocks' is not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Fireblocks publishes none.
pub fn fireblocks(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("fireblocks")
        .signature(Fireblocks::new(), secrets)
        .delivery_id(member("id"))
        .event_type(member("eventType"))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::unknown())
}
