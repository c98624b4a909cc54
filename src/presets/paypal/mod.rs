use self::scheme::PayPal;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;
mod webhook;

pub use webhook::PayPalWebhook;

/// [PayPal](https://developer.paypal.com/api/rest/webhooks/rest/). Feature `rsa`.
///
/// **The signature covers only a CRC-32 of the body, which does not protect it: whoever has captured one delivery can
/// make another body for it, with any content and any id.** If that matters, fetch the event's object from PayPal's API
/// before acting on it.
///
/// - Signature: `PAYPAL-TRANSMISSION-SIG: <base64>`, an RSA signature with SHA-256 of
///   `<transmission id>|<time>|<webhook id>|<CRC-32 of the body>`.
/// - Keys: in the certificate at `PAYPAL-CERT-URL`.
///   [`Provider::keys`](Provider::keys) fetches the certificate, with the feature `x509`. The address must be on
///   `api.paypal.com` or `api.sandbox.paypal.com`, whose TLS vouches for the certificate. Its name must be
///   `messageverificationcerts.….paypal.com`, and it must have been valid at the time of transmission. Its
///   issuers are not checked. PayPal's SDKs check them, up to a root that may be out of date.
///   Nothing is fetched if the [webhook](PayPalWebhook) has the [public key](PayPalWebhook::public_key). When PayPal
///   changes its certificate, change the key.
/// - Tolerance: any age, as PayPal asks for none. **A captured request stays valid forever.**
/// - Delivery id: `$.id`, **not** covered by more than the CRC-32. `PAYPAL-TRANSMISSION-ID` would be
///   wrong, as it is new for each transmission. Some of the sample events of PayPal's simulator share an id: of
///   those, the later ones are duplicates. Event type: `$.event_type`.
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
