use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [Twitch EventSub](https://dev.twitch.tv/docs/eventsub/handling-webhook-events/).
///
/// - Signature: `Twitch-Eventsub-Message-Signature: sha256=<hex>`, an HMAC-SHA256 of
///   `<id><time><body>`, where the time is the date in `Twitch-Eventsub-Message-Timestamp`.
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: Twitch does not say that it is
///   signed with a new one. Twitch advises 10 minutes.
/// - Delivery id: `Twitch-Eventsub-Message-Id`, covered by the signature. Event type:
///   `Twitch-Eventsub-Subscription-Type`, which is **not** covered; the body also has it, as
///   `$.subscription.type`. The revocation of a subscription is a delivery with the same event
///   type, and its `Twitch-Eventsub-Message-Type` is `revocation`.
#[doc = include_str!("facts/twitch.md")]
pub fn twitch(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("twitch-eventsub-message-signature"))
        .prefix("sha256=")
        .id_header(HeaderName::from_static("twitch-eventsub-message-id"))
        .timestamp_header(HeaderName::from_static("twitch-eventsub-message-timestamp"))
        .timestamp_in_rfc_3339()
        .signed(SignedContent::new().id().timestamp().body());
    Provider::custom("twitch")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "twitch-eventsub-message-id",
        )))
        .event_type(Source::header(HeaderName::from_static(
            "twitch-eventsub-subscription-type",
        )))
        .event_names_like(["channel.follow", "extension.bits_transaction.create"])
        .payload_version(Source::json(
            JsonPath::member("subscription").then("version"),
        ))
        .signed_handshake(verification)
        .tolerance(Tolerance::past_only(30 * DAY))
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(30 * DAY)
}

fn verification(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    const MESSAGE_TYPE: &str = "webhook_callback_verification";
    if request.header("twitch-eventsub-message-type")? != MESSAGE_TYPE {
        return None;
    }
    let challenge = request.json(&JsonPath::member("challenge"))?;
    Some(Handshake::text(MESSAGE_TYPE, challenge))
}
