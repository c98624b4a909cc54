use std::time::Duration;

use http::HeaderName;

use self::scheme::{REQUEST, Twilio};
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Twilio](https://www.twilio.com/docs/usage/webhooks/webhooks-security): voice, messaging and
/// others that use `X-Twilio-Signature`. Requires the feature `sha1`.
///
/// - Signature: `X-Twilio-Signature: <base64>`, an HMAC-SHA1, under the auth token, of the URL and the form
///   fields. The fields are sorted by name, and each name is followed by its value. The signature does not cover
///   where a name ends and its value starts. If the query has `bodySHA256`, only the URL is signed, and the body
///   must have that SHA-256. The URL is tried with and without its port, and with its query encoded in each of the
///   ways that Twilio's libraries use. The query parameters are verified in the order in which they arrive: Twilio
///   sorts them by name when it calls, but signs the URL as it was configured. So configure the URL with its
///   parameters in alphabetical order. If a request has `X-Twilio-Webhooks-Signature-Settings`, it is signed with
///   one of your [SharedKeys](https://www.twilio.com/docs/usage/webhooks/webhook-shared-keys) (public beta) and
///   the hash that this header names, SHA-256 or SHA-1. If some URLs do not use a SharedKey, configure the auth
///   token as well.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `I-Twilio-Idempotency-Token`, **not** covered by the signature, or, if it is
///   absent, a SHA-256 of the path, the query and the body. `MessageSid` and `CallSid` would be
///   wrong: they are the same for every status of a message or a call. Event type: none, because
///   each kind of event has its own URL.
#[doc = include_str!("../facts/twilio.md")]
///
/// **A duplicate gets an empty 200, which contains no instructions for a call.** This happens when Twilio missed the
/// answer to a request and retries the request. If requests lack `I-Twilio-Idempotency-Token`, it also happens when a
/// caller gives the same answer twice, such as the same digit. If the answer matters, make each request its own
/// delivery, with [`Source::receipt`] as the [`delivery_id`](Provider::delivery_id); the handler then runs again for a
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
