use std::time::Duration;

use self::scheme::{Fal, REQUEST_ID};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;
mod user;

pub use user::FalUser;

/// [fal](https://fal.ai/docs/model-apis/webhooks). Requires the feature `ed25519`.
///
/// - Signature: `X-Fal-Webhook-Signature: <hex>`, an ed25519 signature of four lines: the id in
///   `X-Fal-Webhook-Request-Id`, the user in `X-Fal-Webhook-User-Id`, the time in
///   `X-Fal-Webhook-Timestamp`, and the SHA-256 of the body in hex.
/// - Keys: at `https://rest.fal.ai/.well-known/jwks.json`, fetched by [`Provider::keys`](Provider::keys). A
///   request does not name its key, so every key is tried. If no key matches, the keys are fetched again, at most
///   once a minute.
/// - The preset takes your own [user id](FalUser). **fal's keys are the same for all customers, and each customer
///   can have fal send a signed webhook to your URL**, so a webhook of another user is refused.
/// - Tolerance: 3 days on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: fal does not say that it is signed with a new one. fal asks for 5 minutes. A replay is still
///   recognized as a duplicate.
/// - Delivery id: `X-Fal-Webhook-Request-Id`, covered by the signature. Event type: `$.status`.
#[doc = include_str!("../facts/fal.md")]
pub fn fal(users: impl Into<SecretSource<FalUser>>) -> Provider {
    Provider::custom("fal")
        .signature(Fal::new(), users.into().cast())
        .delivery_id(Source::header(REQUEST_ID))
        .event_type(Source::json(JsonPath::member("status")))
        .event_names_like(["OK"])
        .tolerance(Tolerance::two_sided(3 * DAY))
        .response_deadline(Duration::from_secs(15))
        .redelivery_window(3 * DAY)
}
