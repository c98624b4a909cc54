use std::time::Duration;

use self::scheme::Fireblocks;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Fireblocks](https://developers.fireblocks.com/docs/webhooks-notifications). Feature `rsa`.
///
/// - Signature: `Fireblocks-Webhook-Signature`, a detached JSON Web Signature with RS512 of the
///   body. If it is absent, `Fireblocks-Signature: <base64>`, an RSA signature with SHA-512 of the
///   body. The secret is the public key in PEM. It differs by region and for sandboxes; that of the
///   first kind comes from a key set, from which this crate fetches nothing.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.eventType`.
/// - Redelivery: 10 attempts over about 10 hours, not after a 4xx but 408 and 429; the redelivery
///   window is 3 days, to leave room for late ones.
/// - Response deadline: Fireblocks' is not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Fireblocks publishes none.
pub fn fireblocks(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("fireblocks")
        .signature(Fireblocks::new(), secrets)
        .delivery_id(member("id"))
        .event_type(member("eventType"))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
}
