use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{PublicKeySignature, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Telnyx](https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks). Feature
/// `ed25519`.
///
/// - Signature: `Telnyx-Signature-Ed25519: <base64>`, an ed25519 signature of `<time>|<body>` with
///   the time in `Telnyx-Timestamp`. The secret is the public key of the account.
/// - Tolerance: 3 days, on both sides, which is the redelivery window. Telnyx's SDKs have 5 minutes,
///   but nothing says that a retry is signed at a new time.
/// - Delivery id: `$.data.id`, or `$.id` of an event without that envelope; a clicked link has none
///   and is keyed by `$.message_id`, `$.time_clicked` and `$.url` together; all covered by the
///   signature. Event type: `$.data.event_type`, `$.event_type` or `$.record_type`, the first that
///   is there.
/// - Redelivery: 3 attempts for each of the URL and the failover URL; the redelivery window is 3 days.
/// - Retry: the same id; `$.meta.attempt` counts the attempts, so it is likely signed at a new time
///   (not confirmed).
/// - Response deadline: 2 seconds.
/// - Answer: 2xx is success for messages, but only 200 for calls, so every success gets 200.
/// - Handshake: none.
/// - Body limit: 2 MiB; Telnyx publishes none.
///
/// The webhooks of TeXML are forms without an id. They are rejected with 400 unless
/// [`delivery_id`](Provider::delivery_id) names another source.
pub fn telnyx(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = PublicKeySignature::ed25519(HeaderName::from_static("telnyx-signature-ed25519"))
        .timestamp_header(HeaderName::from_static("telnyx-timestamp"))
        .signed(SignedContent::new().timestamp().text("|").body());
    let data = |name| Source::json(JsonPath::member("data").then(name));
    let member = |name| Source::json(JsonPath::member(name));
    let clicked_link = member("message_id")
        .and(member("time_clicked"))
        .and(member("url"));
    Provider::custom("telnyx")
        .signature(scheme, secrets)
        .delivery_id(data("id").or(member("id")).or(clicked_link))
        .event_type(
            data("event_type")
                .or(member("event_type"))
                .or(member("record_type")),
        )
        .tolerance(Tolerance::two_sided(3 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(2))
        .redelivery_window(3 * DAY)
        .retry(Retry::signed_anew().likely().changes("`$.meta.attempt`"))
}
