use std::time::Duration;

use http::{HeaderName, Method, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{DAY, Handshake, HandshakeRequest, Provider, Secret, SecretSource, Source};

const SIGNATURE: HeaderName = HeaderName::from_static("x-hook-signature");

const SECRET: HeaderName = HeaderName::from_static("x-hook-secret");

/// [Asana](https://developers.asana.com/docs/webhooks-guide).
///
/// - Signature: `X-Hook-Signature: <hex>`, an HMAC-SHA256 of the body under the webhook's secret,
///   which Asana sends once, in the handshake.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; each event in the body has a time. A heartbeat is an empty list of events, so all
///   heartbeats have the same delivery id, and only the first one reaches the handler. If two
///   webhooks with the same endpoint name send the same events, only the first request reaches the
///   handler. Event type: none; each element of `$.events` has an `action`.
#[doc = include_str!("facts/asana.md")]
pub fn asana(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(SIGNATURE);
    Provider::custom("asana")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .unsigned_handshake(exchange)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
}

/// Answers the handshake, in which Asana expects its secret back.
fn exchange(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let value = request.headers().get(&SECRET)?;
    let secret = Secret::new(value.as_bytes()).ok()?;
    let is_exchange =
        request.method() == Method::POST && !request.headers().contains_key(&SIGNATURE);
    is_exchange.then(|| {
        Handshake::empty("handshake")
            .header(SECRET, value.clone())
            .with_secret(secret)
    })
}
