use std::time::Duration;

use http::StatusCode;

use self::scheme::PubSub;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, MIB, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Google Pub/Sub](https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions) push
/// subscriptions with authentication. Feature `rsa`.
///
/// **The token does not cover the body: whoever has captured a request can send any message with its token,
/// until the token expires an hour later.** Google's TLS is all that protects the message on its way.
///
/// - Signature: `Authorization: Bearer`, a JSON Web Token with RS256 of `accounts.google.com`. The secret is
///   what the token must be for, `<service account> <audience>` with one space between:
///   `push@my-project.iam.gserviceaccount.com https://hooks.example.com/pubsub`. Without a configured
///   audience, that is the push endpoint's URL. The claim `email_verified` must be true.
/// - Keys: at `https://www.googleapis.com/oauth2/v3/certs`, fetched by [`Provider::keys`](Provider::keys).
///   Google changes them about weekly (not confirmed).
/// - Tolerance: that of the token, which expires after an hour, with a minute of leeway.
/// - Delivery id: `$.subscription` and `$.message.messageId` together, **not** covered by the signature. The id
///   of a message is unique for its topic only. A subscription whose own name is longer than 170 characters
///   makes the key too long: set another one. A push subscription without wrapping has no such members: with
///   its metadata written, set [`delivery_id`](Provider::delivery_id) to the headers
///   `x-goog-pubsub-subscription-name` and `x-goog-pubsub-message-id`. Event type: none.
/// - Redelivery: until the message is acknowledged or older than the subscription's retention, which is 7
///   days unless you set another, up to 31 days. The redelivery window is 31 days.
/// - Retry: with a new token (likely), and with another `$.deliveryAttempt` if there is a dead-letter topic.
/// - Answer: only 102, 200, 201, 202 and 204 acknowledge, so every success gets 200.
/// - Response deadline: the subscription's acknowledgement deadline, 10 seconds unless you set another.
/// - Handshake: none.
/// - Body limit: 16 MiB, for a message of 10 MB in base64.
pub fn google_pubsub(secrets: impl Into<SecretSource>) -> Provider {
    let message = Source::json(JsonPath::member("message").then("messageId"));
    Provider::custom("google-pubsub")
        .signature(PubSub::new(), secrets)
        .delivery_id(Source::json(JsonPath::member("subscription")).and(message))
        .tolerance(Tolerance::unlimited())
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(31 * DAY)
        .retry(Retry::signed_anew().likely().changes("`$.deliveryAttempt`"))
        .body_limit(16 * MIB)
}
