use http::StatusCode;

use self::scheme::Mailgun;
use crate::provider::signature::Tolerance;
use crate::provider::{HOUR, JsonPath, MIB, Provider, SecretSource, Source};

mod scheme;

/// [Mailgun](https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks).
///
/// **The event is not signed: anyone who has captured one delivery can send any event with its
/// signature.** A `token` is meant to be used once; this preset does not remember tokens.
///
/// - Signature: `$.signature.signature` in the body, hexadecimal, an HMAC-SHA256 of
///   `$.signature.timestamp` and `$.signature.token` under the webhook signing key.
/// - Tolerance: 24 hours in the past, any time in the future. The limit is the redelivery window; Mailgun leaves the
///   tolerance to the receiver. **A captured signature is accepted with any event for that long, and no longer.**
/// - Delivery id: `$.event-data.id`, **not** covered by the signature. Mailgun promises that the id
///   is unique within a day; it looks like 128 random bits, which do not repeat. Event type:
///   `$.event-data.event`.
#[doc = include_str!("../facts/mailgun.md")]
///
/// Routes and older webhooks send forms. The preset verifies their fields `timestamp`, `token` and
/// `signature` as well, unless the form is multipart. A form has no `$.event-data.id`, so set
/// another [`delivery_id`](Provider::delivery_id), such as [`Source::body_digest`]. Signatures of a
/// parent account are ignored.
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
