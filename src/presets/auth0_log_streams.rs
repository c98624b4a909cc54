use http::header::AUTHORIZATION;

use crate::provider::signature::Token;
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Auth0](https://auth0.com/docs/customize/log-streams) custom webhooks of log streams.
///
/// **Nothing is signed: whoever learns the token can send any log.**
///
/// - Signature: none. `Authorization` has the authorization token of the stream, as it is.
/// - Delivery id: the SHA-256 of the body, since a body is a batch of logs. Each has a `log_id`, by which a handler can
///   recognize logs that it knows from another batch. Event type: none, as the logs
///   of a batch have types of their own.
#[doc = include_str!("facts/auth0-log-streams.md")]
pub fn auth0_log_streams(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("auth0-log-streams")
        .signature(Token::header(AUTHORIZATION), secrets)
        .delivery_id(Source::body_digest())
        .redelivery_window(7 * DAY)
}
