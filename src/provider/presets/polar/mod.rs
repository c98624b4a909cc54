use std::time::Duration;

use self::scheme::Polar;
use super::standard_webhooks::ID;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Polar](https://polar.sh/docs/integrate/webhooks/delivery), which follows Standard Webhooks except
/// for its secrets.
///
/// - Signature: `webhook-signature: v1,<base64>`, an HMAC-SHA256 of `<id>.<time>.<body>` under the
///   secret as text, a `whsec_` before it included. Give it as Polar shows it, and not in base64. As
///   in Polar's newest SDK, the key may also be what the text after `whsec_` is in base64.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`, as in Polar's SDKs.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
/// - Redelivery: up to 10 attempts at growing intervals of at most 20 minutes, after any answer but a
///   2xx, redirects included; on request for as long as Polar has the payload, which is 90 days. That
///   is the redelivery window.
/// - Retry: the same id and body, signed at a new time, as Polar's source has it. So is one on
///   request: of what was processed, it is a duplicate.
/// - Response deadline: 10 seconds; Polar asks for 2.
/// - Switched off: after 10 events in a row that failed for good.
/// - Body limit: 2 MiB; Polar publishes none.
///
/// Only the format *Raw* is meant; those for Slack and Discord have other bodies.
pub fn polar(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("polar")
        .signature(Polar::new(), secrets)
        .delivery_id(Source::header(ID))
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(90 * DAY)
        .retry(Retry::signed_anew())
}
