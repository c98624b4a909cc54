use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [CircleCI](https://circleci.com/docs/guides/integration/outbound-webhooks/).
///
/// - Signature: `circleci-signature: v1=<hex>`, an HMAC-SHA256 of the body. Other versions in the
///   header are skipped.
/// - Delivery id: `$.id`, covered by the signature. Event type: `circleci-event-type`.
#[doc = include_str!("facts/circleci.md")]
pub fn circleci(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("circleci-signature"))
        .prefix("v1=")
        .separator(",");
    Provider::custom("circleci")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::header(HeaderName::from_static(
            "circleci-event-type",
        )))
        .event_names_like(["workflow-completed"])
        .response_deadline(Duration::from_secs(10))
}
