use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{ByHeader, Hmac, Token, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

const SIGNATURE: HeaderName = HeaderName::from_static("x-buildkite-signature");

/// [Buildkite](https://buildkite.com/docs/apis/webhooks/pipelines).
///
/// - Signature: `X-Buildkite-Signature: timestamp=<time>,signature=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the token of the webhook; or, by default, the token itself in
///   `X-Buildkite-Token`. If both are there, the signature counts.
/// - **With the token, the body is not covered by a signature: whoever sees one request can make any
///   other.** Switch the webhook to signatures.
/// - Tolerance: 300 seconds, past only, as in Buildkite's example.
/// - Delivery id: none. The key is the SHA-256 of the body and the event type, which the token does
///   not cover. The body may show a later state of its object than that of the event. Event type:
///   `X-Buildkite-Event` or, if it is absent, `$.event`.
/// - Redelivery: not documented; the redelivery window is 30 days.
/// - Response deadline: not documented; 10 seconds are assumed.
/// - Body limit: 2 MiB; Buildkite publishes none.
pub fn buildkite(secrets: impl Into<SecretSource>) -> Provider {
    let signature = Hmac::hex(SIGNATURE)
        .prefix("signature=")
        .separator(",")
        .timestamp_field("timestamp=");
    let token = Token::header(HeaderName::from_static("x-buildkite-token"));
    let event = || {
        Source::header(HeaderName::from_static("x-buildkite-event"))
            .or(Source::json(JsonPath::member("event")))
    };
    Provider::custom("buildkite")
        .signature(ByHeader::new(SIGNATURE, signature, token), secrets)
        .delivery_id(event().and(Source::body_digest()))
        .event_type(event())
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
}
