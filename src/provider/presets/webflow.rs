use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Webflow](https://developers.webflow.com/data/docs/working-with-webhooks).
///
/// - Signature: `x-webflow-signature: <hex>`, an HMAC-SHA256 of `<time>:<body>`, with the time
///   in milliseconds in `x-webflow-timestamp`. The secret is the client secret of the OAuth
///   app, or the webhook's own key.
/// - Tolerance: 300 seconds, past only (not confirmed; Webflow's SDK checks none).
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   Event type: `$.triggerType`.
/// - Redelivery: 3 attempts; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; Webflow publishes none.
pub fn webflow(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-webflow-signature"))
        .timestamp_header(HeaderName::from_static("x-webflow-timestamp"))
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().timestamp().text(":").body());
    Provider::custom("webflow")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("triggerType")))
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
}
