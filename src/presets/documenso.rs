use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Documenso](https://docs.documenso.com/docs/developers/webhooks/verification).
///
/// **Nothing is signed: whoever learns the secret can send any event.**
///
/// - Signature: none. `X-Documenso-Secret` has the secret of the webhook, as it is. It is empty if none
///   was set, which this preset rejects.
/// - Delivery id: `$.deliveryId`, **not** covered, as nothing is. It is proposed, and **in no release of
///   Documenso yet**: until then the key is the SHA-256 of the body, in which `$.createdAt` is the time of the attempt,
///   so **each retry runs the handler again**. Event type: `$.event`.
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
