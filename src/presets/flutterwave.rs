use http::{HeaderName, StatusCode};

use crate::provider::signature::{ByHeader, Hmac, Token};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Flutterwave](https://developer.flutterwave.com/docs/webhooks), version 3 and version 4.
///
/// **Version 3 signs nothing: whoever learns the secret hash can send any event.** Version 4 signs
/// the body.
///
/// - Signature: `flutterwave-signature: <base64>`, an HMAC-SHA256 of the body under the secret hash
///   (version 4; second-hand). Without that header, `verif-hash`, which has
///   the secret hash as it is (version 3).
/// - Delivery id: the SHA-256 of the body, as there is no id of a delivery. It is not confirmed that `$.webhook_id` of
///   version 4 is one. Event type: `$.event` (version 3) or `$.type` (version 4).
#[doc = include_str!("facts/flutterwave.md")]
pub fn flutterwave(secrets: impl Into<SecretSource>) -> Provider {
    let signature = HeaderName::from_static("flutterwave-signature");
    // The secret is the same: who can send the token knows it, and could make the HMAC.
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
