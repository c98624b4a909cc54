use std::time::Duration;

use http::{HeaderName, StatusCode};

use super::PublicKey;
use crate::provider::signature::{PublicKeySignature, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Telnyx](https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks). Requires the
/// feature `ed25519`.
///
/// - Signature: `Telnyx-Signature-Ed25519: <base64>`, an ed25519 signature of `<time>|<body>` with
///   the time in `Telnyx-Timestamp`. The [`PublicKey`] is the account's key in base64.
/// - Tolerance: 3 days on both sides, equal to the redelivery window, because a retry may carry the
///   timestamp of the first attempt: no source says that it carries a new one. Telnyx's SDKs allow
///   5 minutes.
/// - Delivery id: `$.data.id`, or `$.id` if the event has no `data` envelope. The event for a
///   clicked link has no id; it is identified by `$.message_id`, `$.time_clicked` and `$.url`
///   together. All are covered by the signature. Event type: the first that is present of
///   `$.data.event_type`, `$.event_type` and `$.record_type`.
#[doc = include_str!("facts/telnyx.md")]
///
/// TeXML webhooks are forms without an id. They are rejected with 400 unless
/// [`delivery_id`](Provider::delivery_id) names another source.
pub fn telnyx(keys: impl Into<SecretSource<PublicKey>>) -> Provider {
    let scheme = PublicKeySignature::ed25519(HeaderName::from_static("telnyx-signature-ed25519"))
        .timestamp_header(HeaderName::from_static("telnyx-timestamp"))
        .signed(SignedContent::new().timestamp().text("|").body());
    let data = |name| Source::json(JsonPath::member("data").then(name));
    let member = |name| Source::json(JsonPath::member(name));
    let clicked_link = member("message_id")
        .and(member("time_clicked"))
        .and(member("url"));
    Provider::custom("telnyx")
        .signature(scheme, keys.into().cast())
        .delivery_id(data("id").or(member("id")).or(clicked_link))
        .event_type(
            data("event_type")
                .or(member("event_type"))
                .or(member("record_type")),
        )
        .event_names_like(["message.received", "number_order.complete"])
        .tolerance(Tolerance::two_sided(3 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(2))
        .redelivery_window(3 * DAY)
}
