use http::StatusCode;
use http::header::AUTHORIZATION;

use crate::provider::signature::Token;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Brevo](https://developers.brevo.com/docs/secured-webhooks), once Sendinblue.
///
/// **Nothing is signed: whoever learns the token can send any event.**
///
/// - Signature: none, but `Authorization: Bearer <token>`. Create the webhook with `auth` of type
///   `bearer` and a token, which is the secret. That Brevo sends it in this header is likely (its pages
///   only call it a bearer token). `Bearer` may be in lower case.
/// - Delivery id: none. The key is the SHA-256 of the body, **not** covered, as nothing is. The body has
///   the message, the event and its time, and `$.id` is the id of the webhook (both not confirmed). Event type:
///   `$.event`, which a batch lacks, such as a batch of inbound messages.
#[doc = include_str!("facts/brevo.md")]
///
/// A webhook whose URL has a user and a password is likely called with HTTP Basic authentication. Use
/// [`BasicAuth`](crate::provider::signature::BasicAuth) with these settings for it.
pub fn brevo(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("brevo")
        .signature(Token::header(AUTHORIZATION).prefix("Bearer "), secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["hard_bounce"])
        .failure_status(StatusCode::TOO_MANY_REQUESTS)
        .redelivery_window(3 * DAY)
}
