use std::time::Duration;

use self::scheme::{EVENT, Hook0, TYPE};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

pub(super) mod scheme;

/// [Hook0](https://documentation.hook0.com/tutorials/webhook-authentication), which sends webhooks for other
/// services.
///
/// - Signature: `X-Hook0-Signature: t=<time>,h=<names>,v1=<hex>`, an HMAC-SHA256 of
///   `<time>.<names>.<values>.<body>` under the whole secret. The names of the covered headers are separated by
///   spaces, and their values by full stops. A `v0` next to it, which covers no header, is skipped. **A request
///   that only has a `v0` is refused**, although Hook0's libraries accept it.
/// - Tolerance: 300 seconds on both sides.
/// - Delivery id: `X-Event-Id`, if the signature covers it, as Hook0's signature does; it must be a UUID. If it is
///   not covered, the SHA-256 of the body. Two subscriptions likely get the same id, so give each route its own
///   endpoint name. Event type: `X-Event-Type`, if it is covered.
#[doc = include_str!("../facts/hook0.md")]
pub fn hook0(secrets: impl Into<SecretSource>) -> Provider {
    speaker("hook0", secrets)
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(15))
        .redelivery_window(30 * DAY)
}

/// The settings that all services that send with Hook0 have in common.
pub(super) fn speaker(name: &'static str, secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom(name)
        .signature(Hook0, secrets)
        .delivery_id(Source::signed_value(EVENT))
        .event_type(Source::signed_value(TYPE))
}
