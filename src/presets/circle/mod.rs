use http::StatusCode;

use self::scheme::Circle;

use crate::provider::{JsonPath, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::CircleKeys;

/// [Circle](https://developers.circle.com/api-reference/verify-webhook-signatures): version 2 of the
/// notifications, for example of Wallets, Contracts, Gateway and CPN. Feature `p256`.
///
/// - Signature: `X-Circle-Signature: <base64>`, an ECDSA signature with P-256 and SHA-256, in DER, of
///   the body. `X-Circle-Key-Id` names the key.
/// - Keys: [below an address](CircleKeys::fetched) of Circle's API:
///   `https://api.circle.com/v2/notifications/publicKey`,
///   `https://api.circle.com/v2/cpn/notifications/publicKey` for CPN, or
///   `https://api.circle.com/v2/stablefx/notifications/publicKey` for StableFX; in the sandbox on
///   `api-sandbox.circle.com`. No other address is taken, as the API key goes along. [`Provider::keys`](Provider::keys)
///   fetches the key with the id of the request, a UUID. Its client must add
///   `Authorization: Bearer <API key>`. Where a subscription keeps its key, it may also be
///   [given](CircleKeys::given), as that API shows it; then nothing is fetched, and **a notification with
///   another key is refused**.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.notificationId`, covered by the signature. Event type: `$.notificationType`.
#[doc = include_str!("../facts/circle.md")]
///
/// Version 1 of the notifications, from Circle Mint, Digital Asset Accounts and CPN Managed Payments, comes by Amazon
/// SNS: this preset rejects it, and [`aws_sns`](super::aws_sns()) reads it.
pub fn circle(keys: impl Into<SecretSource<CircleKeys>>) -> Provider {
    Provider::custom("circle")
        .signature(Circle, keys.into().cast())
        .delivery_id(Source::json(JsonPath::member("notificationId")))
        .event_type(Source::json(JsonPath::member("notificationType")))
        .event_names_like(["transactions.inbound", "contracts.eventLog"])
        .answer_head_requests()
        .success_status(StatusCode::OK)
}
