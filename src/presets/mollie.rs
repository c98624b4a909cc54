use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Mollie](https://docs.mollie.com/reference/webhooks-new): the next-generation webhooks. Classic webhooks, a
/// form with a payment id, are **not signed**, and this preset rejects them. A handler for classic webhooks must
/// ask Mollie for the payment.
///
/// - Signature: `X-Mollie-Signature: sha256=<hex>`, with or without the prefix, an HMAC-SHA256 of the body. While
///   a secret is rotated, there are two such headers, or a single header with a comma if a proxy has joined them.
///   One matching signature is enough.
/// - Delivery id: `$.id` (`event_…`), covered by the signature. `$.entityId` would be wrong: it is
///   the same for every event of a payment. Event type: `$.type`.
#[doc = include_str!("facts/mollie.md")]
pub fn mollie(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-mollie-signature"))
        .optional_prefix("sha256=")
        .repeatable()
        .separator(",")
        .trimmed();
    Provider::custom("mollie")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["payment-link.paid"])
        .response_deadline(Duration::from_secs(15))
}
