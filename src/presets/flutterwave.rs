use http::{HeaderName, StatusCode};

use crate::provider::signature::{ByHeader, Hmac, Token};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Flutterwave](https://developer.flutterwave.com/docs/webhooks), versions 3 and 4.
///
/// **Version 3 signs nothing: anyone who learns the secret hash can send any event.** Version 4
/// signs the body.
///
/// - Signature: `flutterwave-signature: <base64>`, an HMAC-SHA256 of the body under the secret hash
///   (version 4; second-hand). Without that header, `verif-hash`, which carries the secret hash
///   verbatim (version 3).
/// - Delivery id: the SHA-256 of the body, because Flutterwave sends no delivery id. It is not confirmed whether
///   `$.webhook_id` in version 4 is one. Event type: `$.event` (version 3) or `$.type` (version 4).
#[doc = include_str!("facts/flutterwave.md")]
pub fn flutterwave(secrets: impl Into<SecretSource>) -> Provider {
    let signature = HeaderName::from_static("flutterwave-signature");
    // Both use the same secret: a sender who knows the token could also compute the HMAC.
    let scheme = ByHeader::new(
        signature.clone(),
        Hmac::base64(signature),
        Token::header(HeaderName::from_static("verif-hash")),
    );
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("flutterwave")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(member("event").or(member("type")))
        .event_names_like(["charge.completed"])
        .success_status(StatusCode::OK)
        .redelivery_window(7 * DAY)
}
