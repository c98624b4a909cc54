use http::HeaderName;

use crate::provider::signature::{ByHeader, Hmac, Token, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

const SIGNATURE: HeaderName = HeaderName::from_static("x-buildkite-signature");

/// [Buildkite](https://buildkite.com/docs/apis/webhooks/pipelines).
///
/// - Signature: `X-Buildkite-Signature: timestamp=<time>,signature=<hex>`, an HMAC-SHA256 of `<time>.<body>` under the
///   webhook's token; or, by default, the token itself in `X-Buildkite-Token`. If both are sent, the signature is
///   verified.
/// - **With the token, the body is not covered by a signature: anyone who sees one request can make
///   any other.** Switch the webhook to signatures.
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window, because a retry may
///   carry the timestamp of the first attempt: no source says that it carries a new one. Buildkite's example allows 5
///   minutes. During these 30 days, a replay is recognized as a duplicate.
/// - Delivery id: none is sent. The preset uses the time and the SHA-256 of the body, both signed. The body alone
///   would be wrong: it contains no time, and may show a state of its object that is later than the event. A build
///   that runs, is blocked and runs again could therefore send the same body twice. **With the token, nothing is
///   deduplicated**, because there is no signed time. Event type: `X-Buildkite-Event` or, if it is absent,
///   `$.event`.
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
