use http::StatusCode;
use http::header::AUTHORIZATION;

use crate::provider::signature::Token;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Brevo](https://developers.brevo.com/docs/secured-webhooks), formerly Sendinblue.
///
/// **Nothing is signed: anyone who learns the token can send any event.**
///
/// - Signature: none, only `Authorization: Bearer <token>`. Create the webhook with `auth` of type `bearer` and a
///   token, which is the secret here. Brevo likely sends it in this header (its pages only call it a bearer
///   token). `Bearer` may be in lower case.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, **not** covered, because nothing is
///   signed. The body contains the message, the event and its time, and `$.id` is the id of the webhook (both not
///   confirmed). Event type: `$.event`, which is missing from a batch, such as a batch of inbound messages.
#[doc = include_str!("facts/brevo.md")]
///
/// If the webhook's URL contains a user and a password, Brevo likely uses HTTP Basic authentication. In that case,
/// use [`BasicAuth`](crate::provider::signature::BasicAuth) with the settings of this preset.
pub fn brevo(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("brevo")
        .signature(Token::header(AUTHORIZATION).prefix("Bearer "), secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["hard_bounce"])
        .failure_status(StatusCode::TOO_MANY_REQUESTS)
        .redelivery_window(3 * DAY)
}
