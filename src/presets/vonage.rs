use http::StatusCode;

use crate::provider::signature::{Encoding, Jwt, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Vonage](https://developer.vonage.com/en/getting-started/concepts/webhooks): Messages, Dispatch,
/// Voice, Verify and Video, with signed webhooks.
///
/// - Signature: `Authorization: Bearer`, a JSON Web Token with HS256 from the issuer `Vonage`, whose claim
///   `payload_hash` is the SHA-256 of the body in hex. The secret is the account's signature secret. Vonage calls
///   the hash optional, but **a request without it is refused**, because nothing else covers the body.
/// - Only POST is accepted. By default, Voice sends a GET with a hash of the parameters, which gets 405.
/// - Tolerance: 24 hours in the past, any time in the future, measured from the claim `iat`. The limit is the
///   redelivery window, because a retry may carry the token of the first attempt: no source says that it has a new one.
///   Vonage's tokens have no expiry; a token with an expiry is refused once it has expired.
/// - Delivery id: `$.message_uuid`, with `$.status` and `$.timestamp` if they are present, because a message has
///   several states, and can have a state several times. For a status without a time, the preset uses the SHA-256
///   of the body instead. For calls, `$.uuid`, `$.status` and `$.timestamp` together. Anything else, such as
///   Verify events, is identified by the SHA-256 of the body. All are covered by the signature. The token's `jti`
///   would be wrong, because a retry likely has a new one. Event type: `$.status` or, if it is absent,
///   `$.message_type`.
#[doc = include_str!("facts/vonage.md")]
///
/// This preset does not support the SMS API, which signs parameters, or the Contact Center, whose
/// token is in `Vonage-Signature`.
pub fn vonage(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Jwt::hs256()
        .issuer("Vonage")
        .body_hash("payload_hash", Encoding::Hex)
        .without_expiry();
    let member = |name| Source::json(JsonPath::member(name));
    let with_state = |id| member(id).and(member("status"));
    let id = with_state("message_uuid")
        .and(member("timestamp"))
        .or(with_state("message_uuid").and(Source::body_digest()))
        .or(member("message_uuid"))
        .or(with_state("uuid").and(member("timestamp")))
        .or(Source::body_digest());
    Provider::custom("vonage")
        .signature(scheme, secrets)
        .delivery_id(id)
        .event_type(member("status").or(member("message_type")))
        .event_names_like(["delivered"])
        .tolerance(Tolerance::past_only(DAY))
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(DAY)
}
