use std::time::Duration;

use http::HeaderName;

use self::scheme::{REQUEST, Twilio};
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Twilio](https://www.twilio.com/docs/usage/webhooks/webhooks-security): voice, messaging and
/// others that use `X-Twilio-Signature`. Feature `sha1`.
///
/// - Signature: `X-Twilio-Signature: <base64>`, an HMAC-SHA1 under the auth token of the URL and
///   the fields of the form, sorted by name, each name followed by its value. Where a name ends and
///   its value begins is not covered. If the query has `bodySHA256`, the URL alone is signed, and
///   the body must have that SHA-256. The URL counts with and without its port, and with its query
///   encoded in any of the ways in which Twilio's libraries do. Its parameters count in the order in which they
///   arrive: Twilio sorts them by name when it calls, but signs the URL as it was configured. Configure it with
///   its parameters in their alphabetical order. With `X-Twilio-Webhooks-Signature-Settings`, it is signed by a
///   [SharedKey](https://www.twilio.com/docs/usage/webhooks/webhook-shared-keys) of yours (public beta), by
///   the hash that this header names, SHA-256 or SHA-1. Give the auth token as well, if there are URLs without.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `I-Twilio-Idempotency-Token`, **not** covered by the signature, or, where it is
///   absent, a SHA-256 of the path, the query and the body. `MessageSid` and `CallSid` would be
///   wrong: each status of a message has the same. Event type: none, as each kind of event has
///   a URL of its own.
#[doc = include_str!("../facts/twilio.md")]
///
/// **A duplicate gets an empty 200, which has no instructions for a call.** That happens to the retry
/// of a request whose answer Twilio has missed and, without the header, to a caller who gives the same
/// answer twice. Where the answer counts, let each request be a delivery of its own, with
/// [`Source::receipt`] as the [`delivery_id`](Provider::delivery_id); the handler then runs again for a
/// retry.
///
/// A webhook that is configured for GET needs [`methods`](Provider::methods).
pub fn twilio(secrets: impl Into<SecretSource>) -> Provider {
    let token = Source::header(HeaderName::from_static("i-twilio-idempotency-token"));
    Provider::custom("twilio")
        .signature(Twilio, secrets)
        .delivery_id(token.or(Source::signed_value(REQUEST)))
        .response_deadline(Duration::from_secs(15))
        .redelivery_window(2 * DAY)
}
