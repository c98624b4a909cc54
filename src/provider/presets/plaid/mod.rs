use std::time::Duration;

use http::StatusCode;

use self::scheme::{Plaid, TOKEN_ID};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Plaid](https://plaid.com/docs/api/webhooks/webhook-verification/). Feature `p256`.
///
/// - Signature: `Plaid-Verification`, a JSON Web Token with ES256, whose claim
///   `request_body_sha256` is the SHA-256 of the body. White space of the body counts.
/// - Keys: at `https://production.plaid.com/webhook_verification_key/get`, by the id in the token. The secret
///   is `<client id>:<secret>`, with `sandbox:` before it for the sandbox, and
///   [`Provider::keys`](Provider::keys) fetches them. A key with an `expired_at` is refused.
///   The secret may also be a key itself, as JSON as that address returns it; then nothing is fetched.
/// - Tolerance: 24 hours, past only, of the claim `iat`, which is the redelivery window. Plaid asks for
///   5 minutes, but does not say that a retry has a new `iat`; a captured request is a duplicate.
/// - Delivery id: the token's `iat` and the SHA-256 of the body, covered by the signature, as there is
///   no id. The body alone would be wrong: two webhooks of one item with one code, such as
///   `SYNC_UPDATES_AVAILABLE`, have the same, and the later one would be dropped. Event type:
///   `$.webhook_type`.
///   In a test, set the time of a delivery that is sent more than once.
/// - Redelivery: after 30 seconds, and then with intervals of 4 times the one before, for up to 24
///   hours, which is the redelivery window.
/// - Retry: whether it is signed anew is not documented. **If it is, the handler runs again.**
/// - Answer: Plaid takes 200 alone, so every success gets it.
/// - Response deadline: 10 seconds.
/// - Switched off: retries, while more than 90 % of the webhooks of the last 24 hours were refused
///   (second-hand).
/// - Handshake: none.
/// - Body limit: 2 MiB; Plaid publishes none.
pub fn plaid(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("plaid")
        .signature(Plaid, secrets)
        .delivery_id(Source::signed_value(TOKEN_ID))
        .event_type(Source::json(JsonPath::member("webhook_type")))
        .tolerance(Tolerance::past_only(DAY))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(DAY)
        .success_status(StatusCode::OK)
        .retry(Retry::unknown().id_unknown())
}
