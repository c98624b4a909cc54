use std::time::Duration;

use http::StatusCode;

use self::scheme::{Plaid, TOKEN_ID};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::PlaidKeys;

/// [Plaid](https://plaid.com/docs/api/webhooks/webhook-verification/). Feature `p256`.
///
/// - Signature: `Plaid-Verification`, a JSON Web Token with ES256, whose claim
///   `request_body_sha256` is the SHA-256 of the body. White space of the body counts.
/// - Keys: at `https://production.plaid.com/webhook_verification_key/get`, by the id in the token, or at
///   `sandbox.plaid.com`, with the API keys of your [account](PlaidKeys), fetched by
///   [`Provider::keys`](Provider::keys). A key with an `expired_at` is refused. One key may also be
///   [given](PlaidKeys::given); then nothing is fetched.
/// - Tolerance: 24 hours, past only, of the claim `iat`, which is the redelivery window. Plaid asks for
///   5 minutes, but does not say that a retry has a new `iat`; a captured request is a duplicate.
/// - Delivery id: the token's `iat` and the SHA-256 of the body, covered by the signature, as there is
///   no id. The body alone would be wrong: two webhooks of one item with one code, such as
///   `SYNC_UPDATES_AVAILABLE`, have the same, and the later one would be dropped. Event type:
///   `$.webhook_type`.
///   In a test, set the time of a delivery that is sent more than once.
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
