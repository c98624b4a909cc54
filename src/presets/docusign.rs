use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [DocuSign Connect](https://developers.docusign.com/platform/webhooks/connect/hmac/): messages in
/// JSON.
///
/// - Signature: `X-DocuSign-Signature-1: <base64>` and so on, one header for each key of the
///   account, each an HMAC-SHA256 of the body. One matching signature is enough.
/// - Delivery id: none is sent. The preset uses `$.data.envelopeId`, `$.event`, `$.generatedDateTime` and, for a
///   recipient event, `$.data.recipientId`. An event without an envelope (`template-*`, `click-*`, `sms-opt-*`) is
///   identified by the SHA-256 of the body, so **its retry runs the handler again** if `$.retryCount` has changed.
///   The signature covers all of these. Event type: `$.event`.
#[doc = include_str!("facts/docusign.md")]
///
/// Messages in XML are signed in the same way, but contain no JSON to read. For them, set
/// [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`].
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
