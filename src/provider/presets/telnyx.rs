use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{PublicKeySignature, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Telnyx](https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks). Feature
/// `ed25519`.
///
/// - Signature: `Telnyx-Signature-Ed25519: <base64>`, an ed25519 signature of `<time>|<body>` with
///   the time in `Telnyx-Timestamp`. The secret is the public key of the account.
/// - Tolerance: 300 seconds, on both sides.
/// - Delivery id: `$.data.id`, covered by the signature; `$.meta.attempt` counts the attempts. Event
///   type: `$.data.event_type`.
/// - Redelivery: unless the answer is 200, at the failover URL; how often is not confirmed; the
///   redelivery window is 3 days.
/// - Response deadline: 2 seconds (not confirmed).
/// - Handshake: none.
/// - Body limit: 2 MiB; Telnyx publishes none.
pub fn telnyx(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = PublicKeySignature::ed25519(HeaderName::from_static("telnyx-signature-ed25519"))
        .timestamp_header(HeaderName::from_static("telnyx-timestamp"))
        .signed(SignedContent::new().timestamp().text("|").body());
    let data = |name| Source::json(JsonPath::member("data").then(name));
    Provider::custom("telnyx")
        .signature(scheme, secrets)
        .delivery_id(data("id"))
        .event_type(data("event_type"))
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(2))
        .redelivery_window(3 * DAY)
}
