use std::time::Duration;

use http::{HeaderName, Method};

use crate::provider::signature::{Derivation, Hmac};
use crate::provider::{HOUR, Handshake, HandshakeRequest, MIB, Provider, SecretSource, Source};

const SIGNATURE: HeaderName = HeaderName::from_static("x-wc-webhook-signature");

/// [WooCommerce](https://woocommerce.com/document/webhooks/).
///
/// - Signature: `X-WC-Webhook-Signature: <base64>`, an HMAC-SHA256 of the body under the secret.
///   HTML entities in the secret, such as `&amp;`, are decoded first, as WordPress does. A plugin
///   of the shop can choose another hash function, which this preset does not support.
/// - Delivery id: the topic, `X-WC-Webhook-Delivery-ID` and the SHA-256 of the body. The body is signed; the
///   headers are **not** covered by the signature. The header alone would be wrong: two deliveries of one webhook
///   within the same second share it. The body alone would also be wrong: for `*.deleted`, it is only an id, and
///   for `action.*`, only a name. **If two deliveries within one second agree in all three, the second is a
///   duplicate**; this can happen with `action.*`. Event type: `X-WC-Webhook-Topic`.
#[doc = include_str!("facts/woocommerce.md")]
pub fn woocommerce(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(SIGNATURE).derive_key(Derivation::HtmlText);
    Provider::custom("woocommerce")
        .signature(scheme, secrets)
        .delivery_id(
            Source::header(HeaderName::from_static("x-wc-webhook-topic"))
                .and(Source::header(HeaderName::from_static(
                    "x-wc-webhook-delivery-id",
                )))
                .and(Source::body_digest()),
        )
        .event_type(Source::header(HeaderName::from_static(
            "x-wc-webhook-topic",
        )))
        .event_names_like(["order.created", "action.woocommerce_add_to_cart"])
        .unsigned_handshake(ping)
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(60))
        .redelivery_window(24 * HOUR)
}

/// The ping is not signed, so the request must contain nothing else.
fn ping(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let id = request.body().strip_prefix(b"webhook_id=")?;
    let is_ping = request.method() == Method::POST
        && !request.headers().contains_key(&SIGNATURE)
        && !id.is_empty()
        && id.iter().all(u8::is_ascii_digit);
    is_ping.then(|| Handshake::empty("ping"))
}
