use self::scheme::PayPal;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;
mod webhook;

pub use webhook::PayPalWebhook;

/// [PayPal](https://developer.paypal.com/api/rest/webhooks/rest/). Requires the feature `rsa`.
///
/// **The signature covers only a CRC-32 of the body, which does not protect the body: anyone who has captured one
/// delivery can make another body for it, with any content and any id.** If that matters, fetch the event's object
/// from PayPal's API before acting on it.
///
/// - Signature: `PAYPAL-TRANSMISSION-SIG: <base64>`, an RSA signature with SHA-256 of
///   `<transmission id>|<time>|<webhook id>|<CRC-32 of the body>`.
/// - Keys: in the certificate at `PAYPAL-CERT-URL`. [`Provider::keys`](Provider::keys) fetches the certificate,
///   with the feature `x509`. The address must be on `api.paypal.com` or `api.sandbox.paypal.com`, and the TLS of
///   that host vouches for the certificate. The certificate's name must be
///   `messageverificationcerts.….paypal.com`, and it must have been valid at the time of transmission. Its issuers
///   are not checked. PayPal's SDKs check them, up to a root that may be out of date. Nothing is fetched if you
///   give the [webhook](PayPalWebhook) a [public key](PayPalWebhook::public_key). In that case, change the key
///   when PayPal changes its certificate.
/// - Tolerance: any age, because PayPal does not ask for a limit. **A captured request stays valid
///   forever.**
/// - Delivery id: `$.id`, **not** covered, except by the CRC-32. `PAYPAL-TRANSMISSION-ID` would be wrong, because
///   it is new for each transmission. Some sample events of PayPal's simulator share an id, so the later ones are
///   duplicates. Event type: `$.event_type`.
#[doc = include_str!("../facts/paypal.md")]
pub fn paypal(webhooks: impl Into<SecretSource<PayPalWebhook>>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("paypal")
        .signature(PayPal, webhooks.into().cast())
        .delivery_id(member("id"))
        .event_type(member("event_type"))
        .event_names_like([
            "PAYMENT.PAYOUTS-ITEM.SUCCEEDED",
            "BILLING_AGREEMENTS.AGREEMENT.CREATED",
        ])
        .payload_version(member("resource_version"))
        .redelivery_window(30 * DAY)
}
