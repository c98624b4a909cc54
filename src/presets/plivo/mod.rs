use std::time::Duration;

use http::StatusCode;

use self::scheme::{MESSAGE, Plivo};
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Plivo](https://www.plivo.com/docs/voice/concepts/signature-validation): voice and messaging. Requires the
/// feature `sha1`.
///
/// **The version 2 signature does not cover the body, and this preset accepts it if there is no version 3
/// signature: anyone who has captured such a request can send any body with it.**
///
/// - Signature: `X-Plivo-Signature-V3: <base64>`, or a list of such signatures. Each is an HMAC-SHA256 under the auth
///   token, and covers the URL, its sorted query, the sorted form and `X-Plivo-Signature-V3-Nonce`. If this header is
///   absent, the signature is `X-Plivo-Signature-V2`, an HMAC-SHA256 of the URL without its query and of
///   `X-Plivo-Signature-V2-Nonce`. If both headers are absent, it is `X-Plivo-Signature`, an HMAC-SHA1 of the URL and
///   the sorted form.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: any age, because no time is signed. Nonces are not remembered.
/// - Delivery id: for a request with a `MessageUUID`, a SHA-256 of the path, the query and the body, because every
///   event of a message has the same `MessageUUID`. Any other request, such as one about a call, gets a new id for each
///   receipt ([`Source::receipt`]), so **nothing is deduplicated**: if a caller gives the same answer twice, such as
///   the same digit, Plivo sends two requests that cannot be distinguished, and each of them needs a response with
///   instructions for the call. Event type: none.
#[doc = include_str!("../facts/plivo.md")]
///
/// A webhook that is configured for GET needs [`methods`](Provider::methods).
pub fn plivo(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("plivo")
        .signature(Plivo, secrets)
        .delivery_id(Source::signed_value(MESSAGE).or(Source::receipt()))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(8))
        .redelivery_window(2 * DAY)
}
