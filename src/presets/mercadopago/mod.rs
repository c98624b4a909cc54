use std::time::Duration;

use http::{HeaderName, StatusCode};

use self::scheme::MercadoPago;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// [Mercado
/// Pago](https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks).
///
/// - Signature: `x-signature: ts=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `id:<data.id>;request-id:<x-request-id>;ts:<time>;`, where `data.id` is in the query. A part that the request
///   lacks is left out. `data.id` is tried as it is, as in the SDKs, and in lower case, as in the documentation.
/// - **The body is not covered by the signature: anyone who has captured one request can send any
///   body with it.** Do not use anything from the body; ask Mercado Pago for the object that
///   `data.id` names.
/// - Tolerance: 30 days on both sides, equal to the redelivery window; by default, the SDKs do not check the time. `ts`
///   is read as seconds or, with more than 11 digits, as milliseconds, because both occur.
/// - Delivery id: `x-request-id`, covered by the signature. A notification without it is rejected. A proxy that
///   sets its own `x-request-id`, as Envoy does at the edge, breaks every signature: let it keep the header that
///   it receives. `$.id`, the id of the notification, is not covered. Event type: `$.type`.
/// - Action: `$.action`, which starts with the type: `payment.created`.
#[doc = include_str!("../facts/mercadopago.md")]
///
/// Notifications of QR codes are not signed, and this preset rejects them.
pub fn mercadopago(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("mercadopago")
        .signature(MercadoPago::new(), secrets)
        .delivery_id(Source::header(REQUEST_ID))
        .event_type(Source::json(JsonPath::member("type")))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like([
            "payment",
            "topic_merchant_order_wh",
            "mp-connect",
            "payment.created",
        ])
        .and_event_names(&["mp-connect.*", "point_integration_wh.*"])
        .payload_version(Source::json(JsonPath::member("api_version")))
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(22))
}
