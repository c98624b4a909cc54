use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [WorkOS](https://workos.com/docs/events/data-syncing/webhooks).
///
/// - Signature: `WorkOS-Signature: t=<milliseconds>, v1=<hex>`, with a space after the comma,
///   an HMAC-SHA256 of `<milliseconds>.<body>` under the whole secret.
/// - Tolerance: 30 days on both sides, equal to the redelivery window. WorkOS's SDKs allow 3 minutes, but WorkOS
///   describes the timestamp as the time of the event, and a retry may come days later.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.event`.
#[doc = include_str!("facts/workos.md")]
pub fn workos(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("workos-signature"))
        .prefix("v1=")
        .separator(", ")
        .timestamp_field("t=")
        .timestamp_in_milliseconds();
    Provider::custom("workos")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["user.created", "organization_domain.verified"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(5))
}
