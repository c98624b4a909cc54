use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [WorkOS](https://workos.com/docs/events/data-syncing/webhooks).
///
/// - Signature: `WorkOS-Signature: t=<milliseconds>, v1=<hex>`, with a space after the comma,
///   an HMAC-SHA256 of `<milliseconds>.<body>` under the whole secret.
/// - Tolerance: 180 seconds, on both sides, as in one of WorkOS's SDKs; another one looks at
///   the past only.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.event`.
/// - Redelivery: not confirmed; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; WorkOS publishes none.
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
        .tolerance(Tolerance::two_sided(Duration::from_secs(180)))
}
