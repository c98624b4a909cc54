use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// [Mercado
/// Pago](https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks).
///
/// - Signature: `x-signature: ts=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `id:<data.id>;request-id:<x-request-id>;ts:<time>;`, where `data.id` is in the query. A
///   part that the request lacks is left out. The case of `data.id` is kept, as in the SDKs;
///   the documentation asks for lower case.
/// - **The body is not covered by the signature: anyone who has captured one request can send
///   any body with it.** Take nothing from the body; ask Mercado Pago for the object that
///   `data.id` names.
/// - Tolerance: 30 days, on both sides, which is the redelivery window; the SDKs check none
///   unless they are asked to. `ts` is taken for seconds or, with more than 11 digits, for
///   milliseconds: both occur.
/// - Delivery id: `x-request-id`, covered by the signature. A notification without it is rejected.
///   A proxy that sets its own, as Envoy does at the edge, breaks each signature: let it keep the one that it
///   receives. `$.id`, the id of the notification, is not covered. Event type: `$.type`.
#[doc = facts!("mercadopago")]
///
/// Notifications of QR codes are not signed, and this preset rejects them.
pub fn mercadopago(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"))
        .prefix("v1=")
        .separator(",")
        .trimmed()
        .timestamp_field("ts=")
        .timestamp_in_seconds_or_milliseconds()
        .signed_without_body(
            SignedContent::new()
                .optional(
                    SignedContent::new()
                        .text("id:")
                        .query_value("data.id")
                        .text(";"),
                )
                .optional(
                    SignedContent::new()
                        .text("request-id:")
                        .header(REQUEST_ID)
                        .text(";"),
                )
                .text("ts:")
                .timestamp()
                .text(";"),
        );
    Provider::custom("mercadopago")
        .signature(scheme, secrets)
        .delivery_id(Source::header(REQUEST_ID))
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(22))
}
