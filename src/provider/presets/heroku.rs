use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Heroku](https://devcenter.heroku.com/articles/app-webhooks).
///
/// - Signature: `Heroku-Webhook-Hmac-SHA256: <base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.webhook_metadata.delivery.id`, covered by the signature. That a retry
///   repeats it is not confirmed. Event type: `$.webhook_metadata.event.include`.
/// - Redelivery: a webhook of the level `notify` gets each delivery once, one of the level
///   `sync` again until it succeeds; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; Heroku publishes none.
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
}
