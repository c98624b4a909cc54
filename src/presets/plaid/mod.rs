use std::time::Duration;

use http::StatusCode;

use self::scheme::{Plaid, TOKEN_ID};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::PlaidKeys;

/// [Plaid](https://plaid.com/docs/api/webhooks/webhook-verification/). Requires the feature `p256`.
///
/// - Signature: `Plaid-Verification`, a JSON Web Token with ES256, whose claim
///   `request_body_sha256` is the SHA-256 of the body. White space in the body matters.
/// - Keys: at `https://production.plaid.com/webhook_verification_key/get`, by the id in the token, or at the same
///   path on `sandbox.plaid.com`. [`Provider::keys`](Provider::keys) fetches them with the API keys of your
///   [account](PlaidKeys). A key with an `expired_at` is refused. You can also [give](PlaidKeys::given) a single
///   key; then nothing is fetched.
/// - Tolerance: 24 hours in the past, any time in the future, measured from the claim `iat`. The limit is the
///   redelivery window, because a retry may carry the `iat` of the first attempt: Plaid does not say that it has a new
///   one. Plaid asks for 5 minutes. A replay is still recognized as a duplicate.
/// - Delivery id: the token's `iat` and the SHA-256 of the body, covered by the signature, because Plaid sends no
///   id. The body alone would be wrong: two webhooks for one item with the same code, such as
///   `SYNC_UPDATES_AVAILABLE`, have the same body, and the later one would be dropped. Event type:
///   `$.webhook_type`. In a test that sends a delivery more than once, set its time.
/// - Action: `$.webhook_code`, as in `TRANSACTIONS.SYNC_UPDATES_AVAILABLE`.
#[doc = include_str!("../facts/plaid.md")]
pub fn plaid(keys: impl Into<SecretSource<PlaidKeys>>) -> Provider {
    Provider::custom("plaid")
        .signature(Plaid, keys.into().cast())
        .delivery_id(Source::signed_value(TOKEN_ID))
        .event_type(Source::json(JsonPath::member("webhook_type")))
        .event_action(Source::json(JsonPath::member("webhook_code")))
        .event_names_like([
            "TRANSACTIONS",
            "BANK_TRANSFERS",
            "TRANSACTIONS.SYNC_UPDATES_AVAILABLE",
        ])
        .tolerance(Tolerance::past_only(DAY))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(DAY)
        .success_status(StatusCode::OK)
}
