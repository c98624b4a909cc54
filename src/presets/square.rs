use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Square](https://developer.squareup.com/docs/webhooks/step3validate).
///
/// - Signature: `x-square-hmacsha256-signature: <base64>`, an HMAC-SHA256 of the notification URL
///   followed by the body. Set the scheme and host with [`public_url`](Provider::public_url).
/// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/square.md")]
pub fn square(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-square-hmacsha256-signature"))
        .signed(SignedContent::new().url().body());
    Provider::custom("square")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event_id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["payment.updated", "webhooks.test_notification"])
        .response_deadline(Duration::from_secs(10))
}
