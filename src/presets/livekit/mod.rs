use http::StatusCode;

use self::scheme::LiveKit;
use crate::provider::signature::Tolerance;
use crate::provider::{HOUR, JsonPath, Provider, SecretSource, Source};

mod key;
mod scheme;

pub use key::LiveKitKey;

/// [LiveKit](https://docs.livekit.io/home/server/webhooks/).
///
/// - Signature: `Authorization`, a JSON Web Token with HS256, whose claim `sha256` is the SHA-256 of the body in
///   base64, and whose issuer is the [API key](LiveKitKey). A participant's access token has the same issuer and
///   the same secret, but no hash, so it is refused.
/// - Tolerance: the lifetime of the token, which expires after 5 minutes, plus a minute of leeway.
/// - Delivery id: `$.id`, covered by the signature. If LiveKit sends an event to several URLs, it has the same id
///   at each of them. Event type: `$.event`.
#[doc = include_str!("../facts/livekit.md")]
pub fn livekit(keys: impl Into<SecretSource<LiveKitKey>>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("livekit")
        .signature(LiveKit::new(), keys.into().cast())
        .delivery_id(member("id"))
        .event_type(member("event"))
        .event_names_like(["room_started"])
        .tolerance(Tolerance::unlimited())
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(HOUR)
}
