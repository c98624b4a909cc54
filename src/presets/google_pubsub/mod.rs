use std::time::Duration;

use http::StatusCode;

use self::scheme::Token;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

mod push;
mod scheme;

pub use push::PubSub;

/// [Google Pub/Sub](https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions) push
/// subscriptions with authentication. Requires the feature `rsa`.
///
/// **The token does not cover the body: anyone who has captured a request can send any message with its token,
/// until the token expires an hour later.** Only Google's TLS protects the message in transit.
///
/// - Signature: `Authorization: Bearer`, a JSON Web Token with RS256, issued by `accounts.google.com` for the
///   service account and the audience of the [subscription](PubSub). The claim `email_verified` must be true.
/// - Keys: at `https://www.googleapis.com/oauth2/v3/certs`, fetched by [`Provider::keys`](Provider::keys).
///   Google changes them about weekly (not confirmed).
/// - Tolerance: the lifetime of the token, which expires after an hour, plus a minute of leeway.
/// - Delivery id: `$.subscription` and `$.message.messageId` together, **not** covered by the signature. A message
///   id is unique only within its topic. If the subscription's own name is longer than 170 characters, the id
///   becomes too long: set another [`delivery_id`](Provider::delivery_id). A push subscription with payload
///   unwrapping does not send these members: let it write the metadata, and set `delivery_id` to the headers
///   `x-goog-pubsub-subscription-name` and `x-goog-pubsub-message-id`. Event type: none.
#[doc = include_str!("../facts/google-pubsub.md")]
pub fn google_pubsub(subscriptions: impl Into<SecretSource<PubSub>>) -> Provider {
    let message = Source::json(JsonPath::member("message").then("messageId"));
    Provider::custom("google-pubsub")
        .signature(Token::new(), subscriptions.into().cast())
        .delivery_id(Source::json(JsonPath::member("subscription")).and(message))
        .tolerance(Tolerance::unlimited())
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(31 * DAY)
        .body_limit(16 * MIB)
}
