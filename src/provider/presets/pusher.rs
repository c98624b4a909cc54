use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{HOUR, Provider, Retry, SecretSource, Source};

/// [Pusher Channels](https://pusher.com/docs/channels/server_api/webhooks/).
///
/// - Signature: `X-Pusher-Signature: <hex>`, an HMAC-SHA256 of the body under the secret of the
///   key that `X-Pusher-Key` names. That header is not signed and is ignored: give all secrets
///   that are valid.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.time_ms` makes it unique. Event type: none; each element of `$.events` has a `name`.
/// - Redelivery: with growing intervals, for 5 minutes, unless the answer is a 2xx; the redelivery
///   window is 24 hours, to leave room for late ones.
/// - Retry: nothing says that it has another body. If `$.time_ms` is new, the handler runs again.
/// - Response deadline: 4 seconds.
/// - Body limit: 2 MiB; Pusher publishes none.
pub fn pusher(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-pusher-signature"));
    Provider::custom("pusher")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .response_deadline(Duration::from_secs(4))
        .redelivery_window(24 * HOUR)
        .retry(Retry::identical().likely())
}
