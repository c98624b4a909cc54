use http::StatusCode;
use http::header::AUTHORIZATION;

use crate::provider::signature::Token;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Brevo](https://developers.brevo.com/docs/secured-webhooks), once Sendinblue.
///
/// **Nothing is signed: whoever learns the token can send any event.**
///
/// - Signature: none, but `Authorization: Bearer <token>`. Create the webhook with `auth` of type
///   `bearer` and a token, which is the secret. That Brevo sends it in this header is likely (its pages
///   only call it a bearer token).
/// - Delivery id: none. The key is the SHA-256 of the body, **not** covered, as nothing is. The body has
///   the message, the event and its time, and `$.id` is that of the webhook (both not confirmed). Event
///   type: `$.event`, which a batch lacks.
/// - Redelivery: 4 times over about 11 hours, after 10 minutes, 1, 2 and 8 hours, but **only after no
///   answer or a 429**: any other 4xx is the end of the event, and so is what Brevo's page calls "any
///   5xX", which is read here as every 5xx. The redelivery window is 3 days, to leave room for late ones.
/// - Retry: likely the same body (not confirmed).
/// - Answer: every failure gets 429 with `Retry-After`. **The 401 for a wrong token is the end of the
///   event**: accept a new token here before it is set in Brevo.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Brevo publishes none.
///
/// A webhook whose URL has a user and a password is likely called with HTTP Basic authentication. Use
/// [`BasicAuth`](crate::signature::BasicAuth) with these settings for it.
pub fn brevo(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("brevo")
        .signature(Token::header(AUTHORIZATION).prefix("Bearer "), secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .failure_status(StatusCode::TOO_MANY_REQUESTS)
        .redelivery_window(3 * DAY)
        .retry(Retry::identical().likely())
}
