use std::time::Duration;

use http::{HeaderName, Method, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{
    DAY, Handshake, HandshakeRequest, JsonPath, Provider, Retry, SecretSource, Source,
};

/// [Nylas](https://developer.nylas.com/docs/v3/notifications/), the webhooks of its version 3.
///
/// - Signature: `X-Nylas-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.id`, covered by the signature. Two webhooks likely get the same one, so give each
///   route an endpoint name of its own. Event type: `$.type`, with `.truncated` after it if the
///   notification was too large.
/// - Handshake: the GET with `challenge` is answered with its text.
/// - Redelivery: up to 2 times, after any answer but 200 and after no answer; for how long is not
///   confirmed, and the redelivery window is 7 days.
/// - Retry: the same notification under the same `$.id`, as documented; `$.webhook_delivery_attempt`
///   likely counts.
/// - Answer: Nylas asks for 200, so every success gets it.
/// - Response deadline: 10 seconds.
/// - Switched off: for a while if most notifications fail, and for good if they fail for days (not
///   confirmed).
/// - Body limit: 2 MiB; Nylas sends up to 1 MB (second-hand).
///
/// Leave `compressed_delivery` off: what is signed is the compressed body, which has no id to read.
pub fn nylas(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-nylas-signature"));
    Provider::custom("nylas")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
        .retry(
            Retry::identical()
                .likely()
                .changes("`$.webhook_delivery_attempt`"),
        )
}

fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let challenge = request.query_value("challenge")?;
    (request.method() == Method::GET).then(|| Handshake::text("challenge", challenge))
}
