use http::HeaderName;

use self::scheme::Netlify;
use crate::provider::{Provider, SecretSource, Source};

mod scheme;

/// [Netlify](https://docs.netlify.com/site-deploys/deploy-notifications/): HTTP POST notifications of deploys.
///
/// - Signature: `X-Webhook-Signature`, a token with HS256 under the JWS secret. Netlify only sends it if there is
///   a secret. Its claims are `iss`, which is `netlify`, and `sha256`, the hash of the body. The token contains no
///   time.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]). The body is the current state of
///   the deploy, likely without the time of the event: a deploy that is locked, unlocked and locked again sends
///   the same body twice. `$.id` is the id of the deploy, which has several events. A retry runs the handler
///   again, and so does a captured request. Let the handler ask Netlify for the deploy. Event type:
///   `X-Netlify-Event`, **not** covered.
#[doc = include_str!("../facts/netlify.md")]
pub fn netlify(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("netlify")
        .signature(Netlify, secrets)
        .delivery_id(Source::receipt())
        .event_type(Source::header(HeaderName::from_static("x-netlify-event")))
        .event_names_like(["deploy_created"])
}
