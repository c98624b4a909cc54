use std::time::Duration;

use http::Method;

use self::scheme::{Braintree, KIND, PAYLOAD, answer};
use crate::provider::{DAY, Handshake, HandshakeRequest, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::BraintreeKeys;

/// [Braintree](https://developer.paypal.com/braintree/docs/guides/webhooks/overview). Requires the feature `sha1`.
///
/// - Signature: the form field `bt_signature` contains pairs `<public key>|<hex>`, joined with `&`.
///   Each hex value is an HMAC-SHA1 of the field `bt_payload` under the SHA-1 of a [private
///   key](BraintreeKeys).
/// - Tolerance: any age; the time in the payload is not checked.
/// - Delivery id: the SHA-256 of the decoded payload, covered by the signature, because Braintree
///   sends no id. If Braintree sends two notifications of the same kind about the same object
///   within a second, the second is a duplicate. Event type: the `kind` in the payload, which is
///   XML in base64.
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

/// Answers the check of a new webhook. A challenge is 20 to 32 hexadecimal digits. If anything else
/// were answered, the endpoint could be made to sign a payload.
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
