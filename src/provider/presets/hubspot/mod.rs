use std::time::Duration;

use self::scheme::{EVENTS, HubSpot};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [HubSpot](https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/request-validation),
/// versions 1 to 3 of its signatures.
///
/// **Versions 1 and 2 are a plain SHA-256 that begins with the secret: whoever has captured such a
/// request can append to its body and to its hash, and its age is not checked.** This preset accepts
/// them where version 3 is absent.
///
/// - Signature: `X-HubSpot-Signature-v3: <base64>`, an HMAC-SHA256 under the client secret of the
///   method, the URL, the body and the time in `X-HubSpot-Request-Timestamp`. The URL counts as it
///   is, and with some of its characters decoded, as the docs ask for. If it is absent,
///   `X-HubSpot-Signature: <hex>` with the version in `X-HubSpot-Signature-Version`: a SHA-256 of
///   the secret and the body (`v1`), or of the secret, the method, the URL and the body (`v2`).
/// - Needs [`public_url`](Provider::public_url), except for version 1.
/// - Tolerance: 300 seconds, past only, as in HubSpot's SDKs.
/// - Delivery id: a SHA-256 of the path, the query and the body, without the `attemptNumber` of its
///   events, which counts the attempts. A body is a batch; the `eventId` of an event is not unique.
///   Event type: none, as the events of a batch have a `subscriptionType` of their own.
/// - Redelivery: 10 times over about 24 hours (second-hand); the redelivery window is 3 days.
/// - Response deadline: 5 seconds (not confirmed).
/// - Handshake: none.
/// - Body limit: 2 MiB; HubSpot publishes none.
pub fn hubspot(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("hubspot")
        .signature(HubSpot, secrets)
        .delivery_id(Source::signed_value(EVENTS))
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(3 * DAY)
}
