use std::time::Duration;

use self::scheme::{Adyen, ITEMS};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Adyen](https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/): payments
/// and platforms.
///
/// **The signature of a payment covers eight of its fields, and nothing else of the body.** The
/// signature of a platform covers the body.
///
/// - Signature: for payments `additionalData.hmacSignature` in each item of the body, base64, an
///   HMAC-SHA256 of `pspReference`, `originalReference`, `merchantAccountCode`,
///   `merchantReference`, `amount.value`, `amount.currency`, `eventCode` and `success`, joined with
///   colons. For platforms the header `HmacSignature`, base64, an HMAC-SHA256 of the body. The
///   secret is the key in hexadecimal digits.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: for payments `<eventCode>:<pspReference>:<success>:<merchantAccountCode>`, or a SHA-256 of these ids
///   for several items; covered by the signature. Of two events that agree in all
///   four, the second is a duplicate, even if its other fields are newer. Two kinds of events have more, which is
///   **not** signed: `REPORT_AVAILABLE`, whose reference is the name of a file that may be made again,
///   `PAIDOUT_REVERSED`, which has the reference of a capture, and `AUTORESCUE_NEXT_ATTEMPT`, which may have the
///   reference of the rescue (not confirmed), have `:<eventDate>`; events of disputes, which all have the reference of
///   the dispute, have `:<disputeStatus>:<eventDate>`, with an empty status if Adyen sends none. Whoever has captured
///   one of them can send it again as another event. For platforms the SHA-256 of the body. Event type: `eventCode` of
///   the first item, or `$.type`.
#[doc = include_str!("../facts/adyen.md")]
pub fn adyen(secrets: impl Into<SecretSource>) -> Provider {
    #[expect(clippy::unwrap_used, reason = "a constant that parses")]
    let code: JsonPath = "$.notificationItems[0].NotificationRequestItem.eventCode"
        .parse()
        .unwrap();
    Provider::custom("adyen")
        .signature(Adyen, secrets)
        .delivery_id(Source::signed_value(ITEMS))
        .event_type(Source::json(code).or(Source::json(JsonPath::member("type"))))
        .event_names_like(["REPORT_AVAILABLE", "paymentMethod.created"])
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(30 * DAY)
}
