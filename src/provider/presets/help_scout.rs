use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

/// [Help Scout](https://developer.helpscout.com/webhooks/). Feature `sha1`.
///
/// - Signature: `X-HelpScout-Signature: <base64>`, an HMAC-SHA1 of the body under the secret key of the
///   webhook.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: none. The key is `X-HelpScout-Event` and the SHA-256 of the body. The body is the
///   conversation or the customer as it is, so that one reply has several events with the same body.
///   The event is **not** covered by the signature: whoever has captured a request can replay it as
///   another event. **Two events with the same name and body are one**, such as a tag that is removed
///   and set again within a second; webhooks with `notification` send no more than a link, and lose
///   events so: do not use them. Event type: `X-HelpScout-Event`.
/// - Redelivery: up to 10 times (second-hand); over how long is not confirmed, and the redelivery window
///   is 7 days.
/// - Retry: not documented; if its body differs, the handler runs again.
/// - Answer: a 410 switches the webhook off (second-hand), so every failure gets 503.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 10 MiB, as a conversation has its threads in it; Help Scout publishes none.
pub fn help_scout(secrets: impl Into<SecretSource>) -> Provider {
    let event = || Source::header(HeaderName::from_static("x-helpscout-event"));
    let scheme = Hmac::base64(HeaderName::from_static("x-helpscout-signature")).hash(Hash::Sha1);
    Provider::custom("help-scout")
        .signature(scheme, secrets)
        .delivery_id(event().and(Source::body_digest()))
        .event_type(event())
        .body_limit(10 * crate::provider::MIB)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(7 * DAY)
        .retry(Retry::unknown().id_unknown())
}
