use std::time::Duration;

use self::scheme::PayPal;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [PayPal](https://developer.paypal.com/api/rest/webhooks/rest/). Feature `rsa`.
///
/// **The signature covers only a CRC-32 of the body, which is no protection: whoever has captured
/// one delivery can make another body for it, with any content and any id.** Where that matters,
/// fetch what the event is about from PayPal's API before acting on it.
///
/// - Signature: `PAYPAL-TRANSMISSION-SIG: <base64>`, an RSA signature with SHA-256 of
///   `<transmission id>|<time>|<webhook id>|<CRC-32 of the body>`. The secret is
///   `<webhook id>:<public key in PEM>`. The key is that of the certificate at `PAYPAL-CERT-URL`,
///   which is not fetched and whose chain has to be checked by whoever takes the key from it:
///   `openssl x509 -pubkey -noout`. When PayPal changes its certificate, the key has to follow. A
///   certificate URL outside `paypal.com` is refused.
/// - Tolerance: any age, as PayPal asks for none. **What was captured once stays valid for ever.**
/// - Delivery id: `$.id`, **not** covered by more than the CRC-32. `PAYPAL-TRANSMISSION-ID` would be
///   wrong, as it is new for each transmission. Event type: `$.event_type`.
/// - Redelivery: 25 times over 3 days, unless the answer is a 2xx, and on request; the redelivery
///   window is 30 days.
/// - Retry: another transmission of the same event (likely), so with another transmission id.
/// - Response deadline: PayPal does not publish one; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; PayPal publishes none.
pub fn paypal(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("paypal")
        .signature(PayPal, secrets)
        .delivery_id(member("id"))
        .event_type(member("event_type"))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(30 * DAY)
        .retry(Retry::signed_anew().likely())
}
