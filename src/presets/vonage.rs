use http::StatusCode;

use crate::provider::signature::{Encoding, Jwt, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Vonage](https://developer.vonage.com/en/getting-started/concepts/webhooks): Messages, Dispatch,
/// Voice, Verify and Video, with signed webhooks.
///
/// - Signature: `Authorization: Bearer`, a JSON Web Token with HS256 of the issuer `Vonage`, whose claim
///   `payload_hash` is the SHA-256 of the body in hex. The secret is the signature secret of the account.
///   Vonage calls the hash optional; **a request without it is refused**, as nothing else covers the body.
/// - Only POST. Voice calls by GET unless it is set otherwise, with a hash of the parameters, and gets 405.
/// - Tolerance: 24 hours, past only, of the claim `iat`, which is the redelivery window. Vonage's tokens
///   have no expiry, and nothing says that a retry has a new one; one that has expired is refused.
/// - Delivery id: `$.message_uuid`, with `$.status` and `$.timestamp` if they are there, as one message has
///   several states, and one state several times. A status without a time has the SHA-256 of the body instead. For calls `$.uuid`, `$.status` and `$.timestamp` together. Anything else, such as the
///   events of Verify, is keyed by the SHA-256 of the body. All covered by the signature. The token's `jti`
///   is not it, as a retry likely has a new one. Event type: `$.status` or, if it is absent,
///   `$.message_type`.
#[doc = include_str!("facts/vonage.md")]
///
/// Not for the SMS API, which signs parameters, and not for the Contact Center, whose token is in
/// `Vonage-Signature`.
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
