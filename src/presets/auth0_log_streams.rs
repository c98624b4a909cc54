use http::header::AUTHORIZATION;

use crate::provider::signature::Token;
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Auth0](https://auth0.com/docs/customize/log-streams): custom webhooks of log streams.
///
/// **Nothing is signed: anyone who learns the token can send any log.**
///
/// - Signature: none. `Authorization` carries the stream's authorization token verbatim.
/// - Delivery id: the SHA-256 of the body, because a body is a batch of logs. Each log has a `log_id`, by which a
///   handler can recognize logs that already came in another batch. Event type: none, because each log of a batch
///   has its own type.
#[doc = include_str!("facts/auth0-log-streams.md")]
pub fn auth0_log_streams(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("auth0-log-streams")
        .signature(Token::header(AUTHORIZATION), secrets)
        .delivery_id(Source::body_digest())
        .redelivery_window(7 * DAY)
}
