use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{HOUR, Provider, SecretSource, Source};

/// [Pusher Channels](https://pusher.com/docs/channels/server_api/webhooks/).
///
/// - Signature: `X-Pusher-Signature: <hex>`, an HMAC-SHA256 of the body under the secret of the key
///   that `X-Pusher-Key` names. `X-Pusher-Key` is not signed and is ignored, so configure all valid
///   secrets.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.time_ms` makes each body unique. Event type: none; each element of `$.events`
///   has a `name`.
#[doc = include_str!("facts/pusher.md")]
pub fn pusher(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-pusher-signature"));
    Provider::custom("pusher")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .response_deadline(Duration::from_secs(4))
        .redelivery_window(24 * HOUR)
}
