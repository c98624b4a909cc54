use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

/// [Persona](https://docs.withpersona.com/webhooks-best-practices).
///
/// - Signature: `Persona-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of `<time>.<body>`. While a
///   secret is rotated, there are two such pairs, separated by a space. One matching signature is
///   enough.
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window;
///   Persona documents no tolerance.
/// - Delivery id: `$.data.id` (`evt_…`), covered by the signature. Event type:
///   `$.data.attributes.name`.
#[doc = include_str!("facts/persona.md")]
pub fn persona(secrets: impl Into<SecretSource>) -> Provider {
    let scheme =
        Hmac::timestamped(HeaderName::from_static("persona-signature")).list_separator(" ");
    Provider::custom("persona")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("data").then("id")))
        .event_type(Source::json(
            JsonPath::member("data").then("attributes").then("name"),
        ))
        .event_names_like(["inquiry.marked-for-review", "report/adverse-media.ready"])
        .tolerance(Tolerance::past_only(30 * DAY))
        .body_limit(4 * MIB)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(5))
}
