use std::time::Duration;

use http::StatusCode;

use self::scheme::{EVENTS, HubSpot};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [HubSpot](https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/request-validation),
/// versions 1 to 3 of its signatures.
///
/// **Versions 1 and 2 are a plain SHA-256 that begins with the secret: whoever has captured such a
/// request can append to its body and to its hash, and its age is not checked.** This preset accepts
/// them where version 3 is absent, and no setting demands version 3.
///
/// - Signature: `X-HubSpot-Signature-v3: <base64>`, an HMAC-SHA256 under the client secret of the
///   method, the URL, the body and the time in `X-HubSpot-Request-Timestamp`. The URL counts as it
///   is, and with some of its characters decoded, as the docs ask for. If it is absent,
///   `X-HubSpot-Signature: <hex>` with the version in `X-HubSpot-Signature-Version`: a SHA-256 of
///   the secret and the body (`v1`), or of the secret, the method, the URL and the body (`v2`).
/// - Needs [`public_url`](Provider::public_url), except for version 1.
/// - Tolerance: 7 days, past only, which is the redelivery window: HubSpot's SDKs take 5 minutes, but
///   nothing says that a retry carries a new time. A captured request of version 3 stays a duplicate.
/// - Delivery id: a SHA-256 of the path, the query and the batch of events that the body is, without
///   their `attemptNumber`, which counts the attempts. The `eventId` of an event is not unique. A
///   webhook of a workflow sends an object instead, the same one each time that the object enters
///   the workflow. Its key is the signed time and the SHA-256 of the body. **In versions 1 and 2,
///   which sign no time, it is not deduplicated**: each request reaches the handler. Event type:
///   none, as the events of a batch have a `subscriptionType` of their own.
#[doc = include_str!("../facts/hubspot.md")]
pub fn hubspot(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::signed_value(EVENTS)
        .or(Source::signed_time().and(Source::body_digest()))
        .or(Source::receipt());
    Provider::custom("hubspot")
        .signature(HubSpot, secrets)
        .delivery_id(id)
        .tolerance(Tolerance::past_only(7 * DAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(7 * DAY)
}
