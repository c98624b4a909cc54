use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [DocuSign Connect](https://developers.docusign.com/platform/webhooks/connect/hmac/),
/// messages in JSON.
///
/// - Signature: `X-DocuSign-Signature-1: <base64>` and so on, one for each key of the account,
///   an HMAC-SHA256 of the body. One matching signature is enough.
/// - Delivery id: none. The key is `$.data.envelopeId`, `$.event` and `$.generatedDateTime`,
///   covered by the signature. `$.retryCount` changes the body of a retry (not confirmed), so
///   its digest would be wrong. Event type: `$.event`.
/// - Redelivery: for up to 15 days (not confirmed); the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 25 MiB, since a body can have documents (not confirmed).
///
/// Messages in XML are signed alike. They have no JSON to read, so set
/// [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`] for them.
pub fn docusign(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-docusign-signature")).numbered();
    Provider::custom("docusign")
        .signature(scheme, secrets)
        .delivery_id(
            Source::json(JsonPath::member("data").then("envelopeId"))
                .and(Source::json(JsonPath::member("event")))
                .and(Source::json(JsonPath::member("generatedDateTime"))),
        )
        .event_type(Source::json(JsonPath::member("event")))
        .body_limit(25 * MIB)
}
