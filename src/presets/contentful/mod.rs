use std::time::Duration;

use http::{HeaderName, StatusCode};

use self::scheme::Contentful;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Contentful](https://www.contentful.com/developers/docs/webhooks/request-verification/).
///
/// - Signature: `x-contentful-signature: <hex>`, an HMAC-SHA256, under a secret of 64 characters,
///   of the method, the path, the query, the headers that `x-contentful-signed-headers` lists, and
///   the body.
/// - Needs [`public_url`](Provider::public_url) only if a proxy changes the path.
/// - Tolerance: 2 days in the past, any time in the future, measured from `x-contentful-timestamp`.
///   The limit is the redelivery window, because a retry may carry the timestamp of the first
///   attempt: no source says that it carries a new one. Contentful's toolkit allows 30 seconds, but
///   the first retry comes 30 seconds after the failure.
/// - Delivery id: `X-Contentful-Idempotency-Key`. The signature covers it only if it is among the
///   signed headers, which this preset does not require. If it is covered, a captured request that
///   is sent again is a duplicate. **If it is not covered, anyone who has captured a request can
///   replay it under a fresh key for 2 days**: set a shorter [`tolerance`](Provider::tolerance), or
///   the layer's [`replay_guard`](crate::IdempotentWebhook::replay_guard). Event type:
///   `X-Contentful-Topic`.
#[doc = include_str!("../facts/contentful.md")]
pub fn contentful(secrets: impl Into<SecretSource>) -> Provider {
    let header = |name| Source::header(HeaderName::from_static(name));
    Provider::custom("contentful")
        .signature(Contentful, secrets)
        .delivery_id(header("x-contentful-idempotency-key"))
        .event_type(header("x-contentful-topic"))
        .event_names_like([
            "ContentManagement.Entry.publish",
            "ContentManagement.Entry.auto_save",
        ])
        .tolerance(Tolerance::past_only(2 * DAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(30))
        .redelivery_window(2 * DAY)
}
