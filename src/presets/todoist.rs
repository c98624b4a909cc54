use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Todoist](https://developer.todoist.com/api/v1/#tag/Webhooks).
///
/// - Signature: `X-Todoist-Hmac-SHA256: <base64>`, an HMAC-SHA256 of the body under the app's client secret.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `X-Todoist-Delivery-ID`, **not** covered by the signature. Event type: `$.event_name`.
/// - Groups: `item:*`.
#[doc = include_str!("facts/todoist.md")]
pub fn todoist(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-todoist-hmac-sha256"));
    Provider::custom("todoist")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-todoist-delivery-id",
        )))
        .event_type(Source::json(JsonPath::member("event_name")))
        .event_names_like(["item:added"])
        .success_status(StatusCode::OK)
        .redelivery_window(DAY)
}
