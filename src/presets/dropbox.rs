use std::time::Duration;

use http::{HeaderName, Method, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{HOUR, Handshake, HandshakeRequest, Provider, SecretSource, Source};

/// [Dropbox](https://www.dropbox.com/developers/reference/webhooks).
///
/// - Signature: `X-Dropbox-Signature: <hex>`, an HMAC-SHA256 of the body under the app secret.
/// - Delivery id: none, and **no deduplication**. A notification only lists accounts that have
///   changes, so notifications of different changes can have the same body. Each request is
///   therefore its own delivery, and the handler has to ask Dropbox for the changes since its
///   cursor. Event type: none.
#[doc = include_str!("facts/dropbox.md")]
pub fn dropbox(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-dropbox-signature"));
    Provider::custom("dropbox")
        .signature(scheme, secrets)
        .delivery_id(Source::receipt())
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(24 * HOUR)
}

fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let challenge = request.query_value("challenge")?;
    (request.method() == Method::GET).then(|| Handshake::text("challenge", challenge))
}
