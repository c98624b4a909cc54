use http::StatusCode;

use self::scheme::Circle;

use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Circle](https://developers.circle.com/api-reference/verify-webhook-signatures): version 2 of the
/// notifications, such as those of Wallets, Contracts, Gateway and CPN. Feature `p256`.
///
/// - Signature: `X-Circle-Signature: <base64>`, an ECDSA signature with P-256 and SHA-256, in DER, of
///   the body. `X-Circle-Key-Id` names the key.
/// - Keys: below an address of Circle's API, which is the secret:
///   `https://api.circle.com/v2/notifications/publicKey`, or
///   `https://api.circle.com/v2/cpn/notifications/publicKey` for CPN. [`Provider::keys`](Provider::keys)
///   fetches the key with the id of the request, a UUID. Its client must add
///   `Authorization: Bearer <API key>`. Where a subscription keeps its key, the secret may also be the key, as
///   that API shows it; then nothing is fetched, and **a notification with another key is refused**.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.notificationId`, covered by the signature. Event type: `$.notificationType`.
/// - Redelivery: of CPN 11 times over about 36 hours, in the sandbox 6 times; of others not confirmed.
///   On request, too; the redelivery window is 30 days.
/// - Retry: the same `$.notificationId`; whether the rest stays is not documented.
/// - Answer: 200 is success, or any 2xx: pages differ, so every success gets 200.
/// - Response deadline: Circle does not publish one; 10 seconds are assumed.
/// - Handshake: a HEAD request when the endpoint is registered, to be answered with success.
/// - Body limit: 2 MiB; Circle publishes none.
///
/// Version 1 of the notifications, such as those of Circle Mint, is signed otherwise, and this preset
/// rejects it.
pub fn circle(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("circle")
        .signature(Circle, secrets)
        .delivery_id(Source::json(JsonPath::member("notificationId")))
        .event_type(Source::json(JsonPath::member("notificationType")))
        .answer_head_requests()
        .success_status(StatusCode::OK)
        .retry(Retry::unknown())
}
