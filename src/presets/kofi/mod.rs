use http::StatusCode;

use self::scheme::{ID, Kofi, TYPE};
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Ko-fi](https://help.ko-fi.com/hc/en-us/articles/360004162298).
///
/// **Nothing is signed: whoever learns the verification token can send any event.**
///
/// - Signature: none. The body is a form, whose field `data` is JSON with the
///   `verification_token` of the account.
/// - Delivery id: `message_id` of that JSON. It is not covered, as nothing is. Event type: its
///   `type`, such as `Donation`.
#[doc = include_str!("../facts/kofi.md")]
///
/// A test delivery is made of the JSON: its signer makes the form.
pub fn kofi(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("kofi")
        .signature(Kofi::new(), secrets)
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .event_names_like(["Shop Order"])
        .success_status(StatusCode::OK)
        .redelivery_window(7 * DAY)
}
