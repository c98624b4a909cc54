use std::time::Duration;

use http::StatusCode;

use self::scheme::Fireblocks;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Fireblocks](https://developers.fireblocks.com/docs/webhooks-notifications). Feature `rsa`.
///
/// - Signature: `Fireblocks-Webhook-Signature`, a detached JSON Web Signature with RS512 of the
///   body. If it is absent, `Fireblocks-Signature: <base64>`, an RSA signature with SHA-512 of the
///   body, which Fireblocks sent until March 2026.
/// - Keys: the secret is the region, `us`, `eu`, `eu2` or `sandbox`, whose keys are at
///   `https://keys.fireblocks.io/.well-known/jwks.json` or the like at `eu-keys`, `eu2-keys` and
///   `sandbox-keys`, fetched by [`Provider::keys`](Provider::keys). Or the secret is a public key in PEM; then
///   nothing is fetched, and the older signature counts as well. The keys are the same for all
///   customers: **a request to another customer can be sent to you**. Look at its `$.workspaceId` (likely).
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.eventType`.
/// - Redelivery: 10 attempts over about 8 hours, and on request later; the redelivery window is
///   30 days.
/// - Retry: not documented; the id likely stays.
/// - Answer: 200, so every success gets it. A 4xx but 408 and 429 is not retried, so every failure gets
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
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::unknown())
}
