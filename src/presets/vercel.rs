use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Vercel](https://vercel.com/docs/webhooks/webhooks-api). Requires the feature `sha1`.
///
/// - Signature: `x-vercel-signature: <hex>`, an HMAC-SHA1 of the body. The webhooks of an
///   integration are signed with the integration's client secret.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/vercel.md")]
pub fn vercel(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-vercel-signature")).hash(Hash::Sha1);
    Provider::custom("vercel")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["deployment.created", "integration-configuration.removed"])
        .response_deadline(Duration::from_secs(30))
}
