use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Heroku](https://devcenter.heroku.com/articles/app-webhooks).
///
/// - Signature: `Heroku-Webhook-Hmac-SHA256: <base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.webhook_metadata.delivery.id`, covered by the signature. A delivery has several
///   attempts with ids of their own, so the digest of the body would be wrong. Event type:
///   `$.webhook_metadata.event.include`.
/// - Redelivery: a webhook of the level `notify` gets each delivery once, one of the level `sync`
///   again until it succeeds, for 72 hours. After 72 hours of failures, older deliveries are tried
///   once more and then skipped. The redelivery window is 30 days.
/// - Retry: likely another `$.webhook_metadata.attempt.id`, and so signed anew.
/// - Answer: any 2xx (not confirmed).
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
        .retry(
            Retry::signed_anew()
                .likely()
                .changes("`$.webhook_metadata.attempt.id`"),
        )
}
