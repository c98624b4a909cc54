use http::HeaderName;

use crate::provider::signature::{Hash, Hmac, SignedContent};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Trello](https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/). Feature `sha1`.
///
/// - Signature: `X-Trello-Webhook: <base64>`, an HMAC-SHA1 of the body and, after it, the
///   callback URL, under the secret of the app. Set the scheme and host with
///   [`public_url`](Provider::public_url).
/// - Delivery id: `$.action.id`, covered by the signature. Event type: `$.action.type`.
/// - **Each webhook delivers an action under the same id: on one endpoint, the second of a board's and
///   of its card's would be lost.** Give each webhook an endpoint of its own, or add the model to the
///   key: `.delivery_id(Source::json("$.action.id".parse()?).and(Source::json("$.model.id".parse()?)))`.
#[doc = include_str!("facts/trello.md")]
pub fn trello(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-trello-webhook"))
        .hash(Hash::Sha1)
        .signed(SignedContent::new().body().url());
    Provider::custom("trello")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("action").then("id")))
        .event_type(Source::json(JsonPath::member("action").then("type")))
        .event_names_like(["updateCard"])
        .answer_head_requests()
}
