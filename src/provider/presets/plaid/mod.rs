use std::time::Duration;

use http::StatusCode;

use self::scheme::{Plaid, TOKEN_ID};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Plaid](https://plaid.com/docs/api/webhooks/webhook-verification/). Feature `p256`.
///
/// - Signature: `Plaid-Verification`, a JSON Web Token with ES256, whose claim
///   `request_body_sha256` is the SHA-256 of the body. White space of the body counts. The secret is
///   the key as JSON, as `/webhook_verification_key/get` returns it for the `kid` of a token. Plaid
///   changes its keys: give each key that is in use as a secret, and refuse none before its
///   `expired_at`.
/// - Tolerance: 300 seconds, past only, of the claim `iat`.
/// - Delivery id: the token's `iat` and the SHA-256 of the body, covered by the signature, as there is
///   no id. The body alone would be wrong: two webhooks of one item with one code, such as
///   `SYNC_UPDATES_AVAILABLE`, have the same, and the later one would be dropped. A captured request
///   is a duplicate, but a retry that Plaid signs anew runs the handler again. Event type:
///   `$.webhook_type`.
///   In a test, set the time of a delivery that is sent more than once.
/// - Redelivery: with growing intervals, for up to 24 hours (not confirmed), which is the redelivery
///   window.
/// - Answer: Plaid takes 200 alone, so every success gets it.
/// - Response deadline: 10 seconds (not confirmed).
/// - Handshake: none.
/// - Body limit: 2 MiB; Plaid publishes none.
pub fn plaid(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("plaid")
        .signature(Plaid, secrets)
        .delivery_id(Source::signed_value(TOKEN_ID))
        .event_type(Source::json(JsonPath::member("webhook_type")))
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(DAY)
        .success_status(StatusCode::OK)
}
