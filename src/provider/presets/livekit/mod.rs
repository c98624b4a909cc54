use std::time::Duration;

use http::StatusCode;

use self::scheme::LiveKit;
use crate::provider::signature::Tolerance;
use crate::provider::{HOUR, JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [LiveKit](https://docs.livekit.io/home/server/webhooks/).
///
/// - Signature: `Authorization`, a JSON Web Token with HS256, whose claim `sha256` is the SHA-256 of the
///   body in base64, and whose issuer is the API key. The secret is `<API key>:<API secret>`. The access
///   token of a participant has the same issuer and the same secret, but no hash, and is refused.
/// - Tolerance: that of the token, which expires after 5 minutes, with a minute of leeway.
/// - Delivery id: `$.id`, covered by the signature. An event that LiveKit sends to several URLs has the
///   same id at each. Event type: `$.event`.
/// - Redelivery: 4 times, after 1, 2, 4 and 8 seconds, after no answer, a 429 or a 5xx but 501. The
///   redelivery window is an hour.
/// - Retry: the very same request.
/// - Answer: any status but those ends it, so every failure gets 503. LiveKit waits as long as
///   `Retry-After` says: let [`retry_after`](crate::IdempotentWebhook::retry_after) be a few seconds, as
///   the token expires.
/// - Response deadline: none by default; 10 seconds are assumed. LiveKit drops events that have waited for
///   30 seconds behind others of their room.
/// - Handshake: none.
/// - Body limit: 2 MiB; LiveKit publishes none.
pub fn livekit(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("livekit")
        .signature(LiveKit::new(), secrets)
        .delivery_id(member("id"))
        .event_type(member("event"))
        .tolerance(Tolerance::unlimited())
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(HOUR)
        .retry(Retry::identical())
}
