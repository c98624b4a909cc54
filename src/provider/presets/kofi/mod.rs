use std::time::Duration;

use http::StatusCode;

use self::scheme::{ID, Kofi, TYPE};
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Ko-fi](https://help.ko-fi.com/hc/en-us/articles/360004162298).
///
/// **Nothing is signed: whoever learns the verification token can send any event.**
///
/// - Signature: none. The body is a form, whose field `data` is JSON with the
///   `verification_token` of the account.
/// - Delivery id: `message_id` of that JSON. It is not covered, as nothing is. Event type: its
///   `type`, such as `Donation`.
/// - Redelivery: unless the answer is exactly 200, for a number of attempts that is not published;
///   the redelivery window is 7 days.
/// - Retry: with the same `message_id`; that nothing else changes is likely.
/// - Answer: only 200 is success, so every success gets it.
/// - Response deadline: Ko-fi does not publish one; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Ko-fi publishes none.
///
/// A test delivery is made of the JSON: its signer makes the form.
pub fn kofi(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("kofi")
        .signature(Kofi::new(), secrets)
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
        .retry(Retry::identical().likely())
}
