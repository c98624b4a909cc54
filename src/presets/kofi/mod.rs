use http::StatusCode;

use self::scheme::{ID, Kofi, TYPE};
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Ko-fi](https://help.ko-fi.com/hc/en-us/articles/360004162298).
///
/// **Nothing is signed: anyone who learns the verification token can send any event.**
///
/// - Signature: none. The body is a form whose field `data` is JSON with the account's
///   `verification_token`.
/// - Delivery id: `message_id` of that JSON. It is not covered, because nothing is signed. Event
///   type: its `type`, such as `Donation`.
#[doc = include_str!("../facts/kofi.md")]
///
/// Pass the JSON to a test delivery: signing it makes the form.
pub fn kofi(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("kofi")
        .signature(Kofi::new(), secrets)
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .event_names_like(["Shop Order"])
        .success_status(StatusCode::OK)
        .redelivery_window(7 * DAY)
}
