use std::time::Duration;

use self::scheme::{MESSAGE, Plivo};
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Plivo](https://www.plivo.com/docs/voice/concepts/signature-validation): voice and messaging. Feature `sha1`.
///
/// **The signature of version 2 does not cover the body, and this preset accepts it where that of
/// version 3 is absent: whoever has captured such a request can send any body with it.**
///
/// - Signature: `X-Plivo-Signature-V3: <base64>`, a list, an HMAC-SHA256 under the auth token of the
///   URL, its sorted query, the sorted form and `X-Plivo-Signature-V3-Nonce`. If it is absent,
///   `X-Plivo-Signature-V2`, an HMAC-SHA256 of the URL without its query and of
///   `X-Plivo-Signature-V2-Nonce`. If that is absent, `X-Plivo-Signature`, an HMAC-SHA1 of the URL
///   and the sorted form.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: any age, as no time is signed. The nonces are not remembered.
/// - Delivery id: of a request with a `MessageUUID`, a SHA-256 of the path, the query and the body, as
///   each event of a message has the same `MessageUUID`. Of any other request, such as that of a
///   call, [`Source::receipt`], so **nothing is deduplicated**: a caller who gives the same answer
///   twice makes two requests that cannot be told apart, and each needs its instructions. Event
///   type: none.
/// - Redelivery: of a message's callback, after no answer or none with a 2xx, 3 times: after 60, 120
///   and 240 seconds. Of a call's callback, once, and only if Plivo could not connect or got no
///   answer; `#rc=3&rp=all` at the end of its URL asks for 3 times and after errors as well. The
///   redelivery window is 2 days.
/// - Retry: with another nonce (likely). **For a call, the handler runs again.**
/// - Response deadline: 8 seconds for messages; calls wait longer.
/// - Handshake: none.
/// - Body limit: 2 MiB; Plivo publishes none.
///
/// A webhook that is configured for GET needs [`methods`](Provider::methods).
pub fn plivo(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("plivo")
        .signature(Plivo, secrets)
        .delivery_id(Source::signed_value(MESSAGE).or(Source::receipt()))
        .response_deadline(Duration::from_secs(8))
        .redelivery_window(2 * DAY)
        .retry(Retry::signed_anew().likely().changes("the id of a call"))
}
