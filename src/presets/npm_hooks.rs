use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [npm hooks](https://docs.npmjs.com/cli/v6/commands/npm-hook), which npm shut down in July 2024.
///
/// - Signature: `x-npm-signature: sha256=<hex>`, an HMAC-SHA256 of the body (not confirmed by
///   npm's own documentation).
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.time` makes each body unique. Event type: `$.event`.
/// - Groups: `package:*`.
#[doc = include_str!("facts/npm-hooks.md")]
pub fn npm_hooks(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-npm-signature")).prefix("sha256=");
    Provider::custom("npm-hooks")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["package:dist-tag"])
        .body_limit(4 * MIB)
}
