use std::time::Duration;

use self::scheme::Polar;
use super::standard_webhooks::ID;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Polar](https://polar.sh/docs/integrate/webhooks/delivery), which follows Standard Webhooks.
///
/// - Signature: `webhook-signature: v1,<base64>`, an HMAC-SHA256 of `<id>.<time>.<body>`. The key is the
///   base64-decoded part of the secret after `whsec_`. Until September 2026, the key was the secret as text,
///   including `whsec_`, and this is still accepted. Configure the secret as Polar shows it.
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`, as in Polar's SDKs.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("../facts/polar.md")]
///
/// The preset is for the format *Raw*; the formats for Slack and Discord have other bodies.
pub fn polar(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("polar")
        .signature(Polar::new(), secrets)
        .delivery_id(Source::header(ID))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["customer.state_changed"])
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(90 * DAY)
}
