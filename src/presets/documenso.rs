use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Documenso](https://docs.documenso.com/docs/developers/webhooks/verification).
///
/// **Nothing is signed: anyone who learns the secret can send any event.**
///
/// - Signature: none. `X-Documenso-Secret` carries the webhook's secret verbatim. If no secret was set, the header
///   is empty, and this preset rejects the request.
/// - Delivery id: `$.deliveryId`, **not** covered, because nothing is signed. It has been proposed, but is **not
///   in any release of Documenso yet**. Until it is released, the preset uses the SHA-256 of the body. Since
///   `$.createdAt` in the body is the time of the attempt, **each retry runs the handler again**. Event type:
///   `$.event`.
#[doc = include_str!("facts/documenso.md")]
pub fn documenso(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    let scheme = Token::header(HeaderName::from_static("x-documenso-secret"));
    Provider::custom("documenso")
        .signature(scheme, secrets)
        .delivery_id(member("deliveryId").or(Source::body_digest()))
        .event_type(member("event"))
        .event_names_like(["DOCUMENT_COMPLETED"])
        .response_deadline(Duration::from_secs(10))
}
