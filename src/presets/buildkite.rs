use http::HeaderName;

use crate::provider::signature::{ByHeader, Hmac, Token, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

const SIGNATURE: HeaderName = HeaderName::from_static("x-buildkite-signature");

/// [Buildkite](https://buildkite.com/docs/apis/webhooks/pipelines).
///
/// - Signature: `X-Buildkite-Signature: timestamp=<time>,signature=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the token of the webhook; or, by default, the token itself in
///   `X-Buildkite-Token`. If both are there, the signature counts.
/// - **With the token, the body is not covered by a signature: whoever sees one request can make any
///   other.** Switch the webhook to signatures.
/// - Tolerance: 30 days, past only, which is the redelivery window: Buildkite's example is
///   5 minutes, but nothing says that a retry carries a new time. In these days a captured request
///   with a signature is a duplicate.
/// - Delivery id: none. The key is the time and the SHA-256 of the body, both signed. The body alone
///   would be wrong: it has no time of its own, and may show a later state of its object than the event's, so a build
///   that runs, is blocked and runs again could have the same twice. **With the
///   token, nothing is deduplicated**, as there is no time. Event type: `X-Buildkite-Event` or, if it
///   is absent, `$.event`.
#[doc = include_str!("facts/buildkite.md")]
pub fn buildkite(secrets: impl Into<SecretSource>) -> Provider {
    let signature = Hmac::hex(SIGNATURE)
        .prefix("signature=")
        .separator(",")
        .timestamp_field("timestamp=");
    let token = Token::header(HeaderName::from_static("x-buildkite-token"));
    let event = Source::header(HeaderName::from_static("x-buildkite-event"))
        .or(Source::json(JsonPath::member("event")));
    let id = Source::signed_time()
        .and(Source::body_digest())
        .or(Source::receipt());
    Provider::custom("buildkite")
        .signature(ByHeader::new(SIGNATURE, signature, token), secrets)
        .delivery_id(id)
        .event_type(event)
        .event_names_like(["build.finished", "cluster_token.registration_blocked"])
        .tolerance(Tolerance::past_only(30 * DAY))
}
