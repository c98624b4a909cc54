use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [DocuSeal](https://github.com/docusealco/docuseal). The facts come from its source code.
///
/// - Signature: `X-Docuseal-Signature: <time>.<hex>`, an HMAC-SHA256 of `<time>.<body>` under the whole `whsec_…`
///   string. Older versions do not sign; they send a header that the user chooses, and this preset rejects their
///   requests.
/// - Tolerance: 300 seconds on both sides, as in DocuSeal's source code.
/// - Delivery id: none is sent. The preset uses `$.event_type`, `$.timestamp` (the time of the event) and
///   `$.data.id` together; all are covered by the signature. Event type: `$.event_type`.
#[doc = include_str!("facts/docuseal.md")]
pub fn docuseal(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-docuseal-signature"))
        .separator(".")
        .timestamp_field("");
    let member = |name| Source::json(JsonPath::member(name));
    let object = Source::json(JsonPath::member("data").then("id"));
    Provider::custom("docuseal")
        .signature(scheme, secrets)
        .delivery_id(member("event_type").and(member("timestamp")).and(object))
        .event_type(member("event_type"))
        .event_names_like(["form.completed"])
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(15))
}
