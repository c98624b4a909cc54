use http::HeaderName;

use self::scheme::Netlify;
use crate::provider::{Provider, Retry, SecretSource, Source};

mod scheme;

/// [Netlify](https://docs.netlify.com/site-deploys/notifications/#payload-signature), its HTTP POST
/// notifications of deploys and form submissions.
///
/// - Signature: `X-Webhook-Signature`, a token with HS256 under the JWS secret, which Netlify only
///   sends if there is a secret. Its claims are `iss`, which is `netlify`, and `sha256`, that of the
///   body. It has no time.
/// - Delivery id: none. The key is `X-Netlify-Event` and the SHA-256 of the body, as two
///   notifications can have the same body: that a deploy succeeded, and that one succeeded after a
///   failure. Only the body is covered: **whoever has captured a request can replay it under another
///   event**. `$.id` would be wrong: it is that of the deploy, which has several events. Without that
///   header, the key is the SHA-256 of the body. Event type: `X-Netlify-Event`, not covered.
/// - Redelivery: not documented; the redelivery window is 30 days.
/// - Retry: not documented. One with another body runs the handler again.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Netlify publishes none.
pub fn netlify(secrets: impl Into<SecretSource>) -> Provider {
    let event = || Source::header(HeaderName::from_static("x-netlify-event"));
    Provider::custom("netlify")
        .signature(Netlify, secrets)
        .delivery_id(event().and(Source::body_digest()).or(Source::body_digest()))
        .event_type(event())
        .retry(Retry::unknown().id_unknown())
}
