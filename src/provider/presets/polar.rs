use std::time::Duration;

use http::HeaderName;

use super::standard_webhooks::ID;
use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Polar](https://polar.sh/docs/integrate/webhooks/delivery), which follows Standard Webhooks except
/// for its secrets.
///
/// - Signature: `webhook-signature: v1,<base64>`, an HMAC-SHA256 of `<id>.<time>.<body>` under the
///   secret as text, a `whsec_` before it included. With any other reader of Standard Webhooks, the
///   secret has to be put in base64 first; here it has not.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`, as in Polar's SDKs.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
/// - Redelivery: up to 10 attempts at growing intervals of at most 20 minutes, after any answer but a
///   2xx, redirects included; on request for as long as Polar has the payload, which is 90 days. That is
///   the redelivery window.
/// - Retry: the same id and body, signed at a new time, as Polar's source has it. So is one on request:
///   of what was processed, it is a duplicate.
/// - Response deadline: 10 seconds; Polar asks for 2.
/// - Switched off: after 10 events in a row that failed for good.
/// - Body limit: 2 MiB; Polar publishes none.
///
/// Only the format *Raw* is meant; those for Slack and Discord have other bodies.
pub fn polar(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("webhook-signature"))
        .prefix("v1,")
        .separator(" ")
        .id_header(ID)
        .timestamp_header(HeaderName::from_static("webhook-timestamp"))
        .signed(
            SignedContent::new()
                .id()
                .text(".")
                .timestamp()
                .text(".")
                .body(),
        );
    Provider::custom("polar")
        .signature(scheme, secrets)
        .delivery_id(Source::header(ID))
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(90 * DAY)
        .retry(Retry::signed_anew())
}
