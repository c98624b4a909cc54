use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [DocuSign Connect](https://developers.docusign.com/platform/webhooks/connect/hmac/),
/// messages in JSON.
///
/// - Signature: `X-DocuSign-Signature-1: <base64>` and so on, one for each key of the account,
///   an HMAC-SHA256 of the body. One matching signature is enough.
/// - Delivery id: none. The key is `$.data.envelopeId`, `$.event`, `$.generatedDateTime` and, of an
///   event of a recipient, `$.data.recipientId`. An event without an envelope (`template-*`, `click-*`,
///   `sms-opt-*`) is keyed by the SHA-256 of the body, so **its retry runs the handler again** if `$.retryCount` has
///   changed. All are covered by the signature. Event type: `$.event`.
#[doc = include_str!("facts/docusign.md")]
///
/// Messages in XML are signed alike. They have no JSON to read, so set
/// [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`] for them.
pub fn docusign(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-docusign-signature")).numbered();
    let envelope = Source::json(JsonPath::member("data").then("envelopeId"))
        .and(Source::json(JsonPath::member("event")))
        .and(Source::json(JsonPath::member("generatedDateTime")));
    let recipient = Source::json(JsonPath::member("data").then("recipientId"));
    Provider::custom("docusign")
        .signature(scheme, secrets)
        .delivery_id(
            envelope
                .clone()
                .and(recipient)
                .or(envelope)
                .or(Source::body_digest()),
        )
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["envelope-completed"])
        .response_deadline(Duration::from_secs(5))
        .body_limit(25 * MIB)
}
