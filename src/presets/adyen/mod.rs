use std::time::Duration;

use self::scheme::{Adyen, ITEMS};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Adyen](https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/): payments
/// and platforms.
///
/// **The signature of a payment webhook covers eight fields of the payment, and nothing else in the
/// body.** The signature of a platform webhook covers the body.
///
/// - Signature: for payments, `additionalData.hmacSignature` in each item of the body: a base64
///   HMAC-SHA256 of `pspReference`, `originalReference`, `merchantAccountCode`,
///   `merchantReference`, `amount.value`, `amount.currency`, `eventCode` and `success`, joined with
///   colons. For platforms, the header `HmacSignature`: a base64 HMAC-SHA256 of the body. The
///   secret is the key in hexadecimal digits.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: for payments, `<eventCode>:<pspReference>:<success>:<merchantAccountCode>`, or a SHA-256 of
///   these ids if there are several items; covered by the signature. If two events agree in all four values, the
///   second is a duplicate, even if its other fields are newer. Two kinds of events have a suffix, which is
///   **not** signed. The first kind has the suffix `:<eventDate>`: `REPORT_AVAILABLE`, whose reference is the name
///   of a file that Adyen may generate again, `PAIDOUT_REVERSED`, which has the reference of a capture, and
///   `AUTORESCUE_NEXT_ATTEMPT`, which may have the reference of the rescue (not confirmed). The second kind,
///   dispute events, has the suffix `:<disputeStatus>:<eventDate>`, because all events of a dispute have the
///   dispute's reference; the status is empty if Adyen sends none. Anyone who has captured an event with a suffix
///   can send it again as another event. For platforms, the SHA-256 of the body. Event type: `eventCode` of the
///   first item, or `$.type`.
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
