use std::time::Duration;

use http::Method;

use self::scheme::{Braintree, KIND, PAYLOAD, answer};
use crate::provider::{DAY, Handshake, HandshakeRequest, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::BraintreeKeys;

/// [Braintree](https://developer.paypal.com/braintree/docs/guides/webhooks/overview). Feature `sha1`.
///
/// - Signature: the form field `bt_signature` has pairs `<public key>|<hex>` joined with `&`, each
///   an HMAC-SHA1 of the field `bt_payload` under the SHA-1 of a
///   [private key](BraintreeKeys).
/// - Tolerance: any age; the time in the payload is not checked.
/// - Delivery id: the SHA-256 of the decoded payload, covered by the signature, as there is no id.
///   Two notifications of one kind about one object in one second are one. Event type: the `kind`
///   in the payload, which is XML in base64.
#[doc = include_str!("../facts/braintree.md")]
pub fn braintree(keys: impl Into<SecretSource<BraintreeKeys>>) -> Provider {
    Provider::custom("braintree")
        .signature(Braintree, keys.into().cast())
        .delivery_id(Source::signed_value(PAYLOAD))
        .event_type(Source::signed_value(KIND))
        .event_names_like(["subscription_went_past_due"])
        .unsigned_handshake(challenge)
        .response_deadline(Duration::from_secs(30))
        .redelivery_window(3 * DAY)
}

/// The check of a new webhook. A challenge is 20 to 32 hexadecimal digits: anything else would have
/// the endpoint sign what may be a payload.
fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let challenge = request.query_value("bt_challenge")?;
    let is_challenge = (20..=32).contains(&challenge.len())
        && challenge.bytes().all(|byte| byte.is_ascii_hexdigit());
    if request.method() != Method::GET || !is_challenge {
        return None;
    }
    let answer = answer(request.secrets()?.iter().next()?, &challenge)?;
    Some(Handshake::text("bt_challenge", answer))
}
