use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Heroku](https://devcenter.heroku.com/articles/app-webhooks).
///
/// - Signature: `Heroku-Webhook-Hmac-SHA256: <base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.webhook_metadata.delivery.id`, covered by the signature. The digest of the
///   body would be wrong, because each attempt of a delivery has its own id in the body. Event
///   type: `$.webhook_metadata.event.include`.
/// - Action: `$.action`, as in `api:release.update`.
/// - Groups: `api:*`.
#[doc = include_str!("facts/heroku.md")]
pub fn heroku(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("heroku-webhook-hmac-sha256"));
    Provider::custom("heroku")
        .signature(scheme, secrets)
        .delivery_id(Source::json(
            JsonPath::member("webhook_metadata")
                .then("delivery")
                .then("id"),
        ))
        .event_type(Source::json(
            JsonPath::member("webhook_metadata")
                .then("event")
                .then("include"),
        ))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like(["api:addon-attachment", "api:addon-attachment.create"])
        .and_event_names(&["dyno", "dyno.*"])
}
