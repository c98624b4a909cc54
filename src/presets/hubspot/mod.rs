use std::time::Duration;

use http::StatusCode;

use self::scheme::{EVENTS, HubSpot};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [HubSpot](https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/request-validation),
/// signature versions 1 to 3.
///
/// **Versions 1 and 2 are a plain SHA-256 of a text that starts with the secret: anyone who has
/// captured such a request can append to its body and extend its hash, and its age is not
/// checked.** This preset accepts them if version 3 is absent, and there is no setting to require
/// version 3.
///
/// - Signature: `X-HubSpot-Signature-v3: <base64>`, an HMAC-SHA256, under the client secret, of the
///   method, the URL, the body and the time in `X-HubSpot-Request-Timestamp`. The URL is tried as
///   it is, and with some of its characters decoded, as HubSpot's documentation asks. If that
///   header is absent, `X-HubSpot-Signature: <hex>` with the version in
///   `X-HubSpot-Signature-Version`: a SHA-256 of the secret and the body (`v1`), or of the secret,
///   the method, the URL and the body (`v2`).
/// - Needs [`public_url`](Provider::public_url), except for version 1.
/// - Tolerance: 7 days in the past, any time in the future. The limit is the redelivery window, because a retry may
///   carry the timestamp of the first attempt: no source says that it carries a new one. HubSpot's SDKs allow 5
///   minutes. A replay of a version 3 request is still recognized as a duplicate.
/// - Delivery id: a SHA-256 of the path, the query and the body, which is a batch of events; the
///   `attemptNumber` of each event, which counts the attempts, is left out. The `eventId` of an
///   event is not unique. A workflow webhook sends an object instead of a batch, and sends the same
///   object each time that it enters the workflow. The id of such a request is the signed time and
///   the SHA-256 of the body. **In versions 1 and 2, which sign no time, a workflow webhook is not
///   deduplicated**: each request reaches the handler. Event type: none, because each event of a
///   batch has its own `subscriptionType`.
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
