use http::StatusCode;

use self::scheme::Circle;

use crate::provider::{JsonPath, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::CircleKeys;

/// [Circle](https://developers.circle.com/api-reference/verify-webhook-signatures): version 2
/// notifications, for example from Wallets, Contracts, Gateway and CPN. Requires the feature
/// `p256`.
///
/// - Signature: `X-Circle-Signature: <base64>`, an ECDSA signature with P-256 and SHA-256, in DER, of
///   the body. `X-Circle-Key-Id` names the key.
/// - Keys: [below an address](CircleKeys::fetched) of Circle's API:
///   `https://api.circle.com/v2/notifications/publicKey`, `https://api.circle.com/v2/cpn/notifications/publicKey`
///   for CPN, or `https://api.circle.com/v2/stablefx/notifications/publicKey` for StableFX; in the sandbox on
///   `api-sandbox.circle.com`. No other address is accepted, because the API key is sent to it.
///   [`Provider::keys`](Provider::keys) fetches the key by the id in the request, a UUID. The client that you pass
///   to it must add `Authorization: Bearer <API key>`. If a subscription keeps its key, you can also
///   [give](CircleKeys::given) the key, as Circle's API shows it. In that case nothing is fetched, and **a
///   notification signed with another key is refused**.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.notificationId`, covered by the signature. Event type: `$.notificationType`.
#[doc = include_str!("../facts/circle.md")]
///
/// Version 1 notifications, from Circle Mint, Digital Asset Accounts and CPN Managed Payments, arrive through
/// Amazon SNS. This preset rejects them; use [`aws_sns`](super::aws_sns()) for them.
pub fn circle(keys: impl Into<SecretSource<CircleKeys>>) -> Provider {
    Provider::custom("circle")
        .signature(Circle, keys.into().cast())
        .delivery_id(Source::json(JsonPath::member("notificationId")))
        .event_type(Source::json(JsonPath::member("notificationType")))
        .event_names_like(["transactions.inbound", "contracts.eventLog"])
        .answer_head_requests()
        .success_status(StatusCode::OK)
}
