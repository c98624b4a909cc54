use http::StatusCode;

use self::scheme::Mailgun;
use crate::provider::signature::Tolerance;
use crate::provider::{HOUR, JsonPath, MIB, Provider, SecretSource, Source};

mod scheme;

/// [Mailgun](https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks).
///
/// **The event is not signed: whoever has captured one delivery can send any event with its
/// signature.** A `token` is meant to be used once; this preset does not remember tokens.
///
/// - Signature: `$.signature.signature` in the body, hexadecimal, an HMAC-SHA256 of
///   `$.signature.timestamp` and `$.signature.token` under the webhook signing key.
/// - Tolerance: 24 hours, past only, which is the redelivery window: Mailgun leaves it to the receiver.
///   **For so long, and no longer, a captured signature passes with any event.**
/// - Delivery id: `$.event-data.id`, **not** covered by the signature. Mailgun promises that it is
///   unique within a day; it looks like 128 random bits, which do not repeat. Event type:
///   `$.event-data.event`.
#[doc = include_str!("../facts/mailgun.md")]
///
/// Routes and older webhooks send forms, whose fields `timestamp`, `token` and `signature` are
/// verified as well, unless the form is a multipart one. A form has no such id: set another
/// [`delivery_id`](Provider::delivery_id), such as [`Source::body_digest`]. The signatures of a
/// parent account are not looked at.
pub fn mailgun(secrets: impl Into<SecretSource>) -> Provider {
    let event = |name| Source::json(JsonPath::member("event-data").then(name));
    Provider::custom("mailgun")
        .signature(Mailgun::new(), secrets)
        .delivery_id(event("id"))
        .event_type(event("event"))
        .event_names_like(["delivered", "list_member_uploaded"])
        .tolerance(Tolerance::past_only(24 * HOUR))
        .body_limit(25 * MIB)
        .redelivery_window(24 * HOUR)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
}
