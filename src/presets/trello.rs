use http::HeaderName;

use crate::provider::signature::{Hash, Hmac, SignedContent};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Trello](https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/). Requires the
/// feature `sha1`.
///
/// - Signature: `X-Trello-Webhook: <base64>`, an HMAC-SHA1 of the body followed by the callback
///   URL, under the app's secret. Set the scheme and host with
///   [`public_url`](Provider::public_url).
/// - Delivery id: `$.action.id`, covered by the signature. Event type: `$.action.type`.
/// - **An action has the same id in every webhook that delivers it. If the webhooks of a board and of its card share an
///   endpoint, the second delivery would be lost.** Give each webhook its own endpoint, or add the model to the id:
///   `.delivery_id(Source::json("$.action.id".parse()?).and(Source::json("$.model.id".parse()?)))`.
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
