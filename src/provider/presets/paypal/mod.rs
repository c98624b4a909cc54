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
///   `<transmission id>|<time>|<webhook id>|<CRC-32 of the body>`.
/// - Keys: in the certificate at `PAYPAL-CERT-URL`. The secret is the webhook id, and
///   [`Provider::keys`](Provider::keys) fetches the certificate, with the feature `x509`. The address must be on
///   `api.paypal.com` or `api.sandbox.paypal.com`, whose TLS vouches for the certificate. Its name must be
///   `messageverificationcerts.….paypal.com`, and it must have been valid at the time of transmission. Its
///   issuers are not checked. PayPal's SDKs check them, up to a root that may be out of date.
///   Without fetching, the secret is `<webhook id>:<public key in PEM>`. When PayPal changes its
///   certificate, the key has to follow.
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
