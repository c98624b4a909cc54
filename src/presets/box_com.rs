use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Box](https://developer.box.com/guides/webhooks/v2/signatures-v2/): the V2 webhooks.
///
/// - Signature: `BOX-SIGNATURE-PRIMARY: <base64>` and `BOX-SIGNATURE-SECONDARY: <base64>`, one
///   header for each of the app's keys, each an HMAC-SHA256 of `<body><time>`, where the time is
///   the date in `BOX-DELIVERY-TIMESTAMP`. One matching signature is enough.
///   `BOX-SIGNATURE-VERSION` must be 1, and `BOX-SIGNATURE-ALGORITHM` must be `HmacSHA256`.
/// - Tolerance: 7 days in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: no source says that it carries a
///   new one. Box's SDKs allow 10 minutes. A replay is still recognized as a duplicate.
/// - Delivery id: `$.id`, covered by the signature. `BOX-DELIVERY-ID` would be wrong: it is new
///   on every retry. Event type: `$.trigger`.
#[doc = include_str!("facts/box.md")]
///
/// The name of the preset is `box`.
pub fn box_com(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("box-signature-primary"))
        .and_header(HeaderName::from_static("box-signature-secondary"))
        .required_header(
            HeaderName::from_static("box-signature-version"),
            HeaderValue::from_static("1"),
        )
        .required_header(
            HeaderName::from_static("box-signature-algorithm"),
            HeaderValue::from_static("HmacSHA256"),
        )
        .timestamp_header(HeaderName::from_static("box-delivery-timestamp"))
        .timestamp_in_rfc_3339()
        .signed(SignedContent::new().body().timestamp());
    Provider::custom("box")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("trigger")))
        .event_names_like(["SHARED_LINK.CREATED"])
        .tolerance(Tolerance::past_only(7 * DAY))
        .response_deadline(Duration::from_secs(30))
        .redelivery_window(7 * DAY)
}
