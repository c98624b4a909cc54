use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use self::scheme::Monday;
use crate::provider::signature::Tolerance;
use crate::provider::{
    HOUR, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source,
};

mod scheme;

/// [monday.com](https://developer.monday.com/apps/docs/authorization-header): board webhooks that an app created.
///
/// **The token does not cover the body: anyone who has captured a request can send any event with its token, until
/// the token expires 5 minutes later.** Only monday's TLS protects the event in transit. **Webhooks that were
/// created in the user interface, or with a personal token, carry no token at all.** Nothing authenticates them,
/// so they are refused.
///
/// - Signature: `Authorization`, a JSON Web Token with HS256 (likely), whose audience is the webhook's URL. The
///   secret is the app's signing secret.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: the lifetime of the token, which expires after 5 minutes, plus a minute of leeway.
/// - Delivery id: `$.event.triggerUuid`, **not** covered by the signature. Event type: `$.event.type`.
#[doc = include_str!("../facts/monday.md")]
///
/// App life-cycle webhooks are signed with the app's client secret, and have no `$.event.triggerUuid`. They are
/// rejected with 400 unless [`delivery_id`](Provider::delivery_id) names another source.
pub fn monday(secrets: impl Into<SecretSource>) -> Provider {
    let event = |name| Source::json(JsonPath::member("event").then(name));
    Provider::custom("monday")
        .signature(Monday::new(), secrets)
        .delivery_id(event("triggerUuid"))
        .event_type(event("type"))
        .event_names_like(["create_pulse"])
        .unsigned_handshake(challenge)
        .tolerance(Tolerance::unlimited())
        .response_deadline(Duration::from_secs(3 * 60))
        .success_status(StatusCode::OK)
        .redelivery_window(HOUR)
}

/// The maximum length of a handshake, in bytes. Anyone can send one, and it is parsed as a whole.
const MAX_CHALLENGE: usize = 4 * 1024;

/// Answers the challenge, in which monday expects its JSON back. A body that also contains an event
/// is not a challenge.
fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    if request.body().len() > MAX_CHALLENGE {
        return None;
    }
    let members: Map<String, Value> = serde_json::from_slice(request.body()).ok()?;
    let challenge = members.get("challenge")?.as_str()?;
    let is_all = request.method() == Method::POST && members.len() == 1;
    is_all.then(|| Handshake::json("challenge", &json!({"challenge": challenge})))
}
