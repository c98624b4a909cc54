use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Knock](https://docs.knock.app/developer-tools/outbound-webhooks): outbound webhooks.
///
/// - Signature: `x-knock-signature: t=<milliseconds>,s=<base64>`, an HMAC-SHA256 of
///   `<milliseconds>.<body>`.
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: Knock does not say that it is
///   signed with a new one. Knock suggests 5 minutes.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.created_at`, in microseconds, and the entity in `$.data` make each body unique.
///   Event type: `$.type`.
#[doc = include_str!("facts/knock.md")]
pub fn knock(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-knock-signature"))
        .prefix("s=")
        .separator(",")
        .timestamp_field("t=")
        .timestamp_in_milliseconds();
    Provider::custom("knock")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["message.link_clicked"])
        .tolerance(Tolerance::past_only(30 * DAY))
        .redelivery_window(30 * DAY)
}
