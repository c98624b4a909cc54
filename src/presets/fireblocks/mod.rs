use http::StatusCode;

use self::scheme::Fireblocks;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

mod keys;
mod scheme;

pub use keys::FireblocksKeys;

/// [Fireblocks](https://developers.fireblocks.com/docs/webhooks-notifications). Requires the
/// feature `rsa`.
///
/// - Signature: `Fireblocks-Webhook-Signature`, a detached JSON Web Signature with RS512 of the
///   body. If that header is absent, `Fireblocks-Signature: <base64>`, an RSA signature with
///   SHA-512 of the body, which Fireblocks sent until March 2026.
/// - Keys: the keys of an [environment](FireblocksKeys) are at `https://keys.fireblocks.io/.well-known/jwks.json`,
///   or at the same path on `eu-keys`, `eu2-keys` and `sandbox-keys`. [`Provider::keys`](Provider::keys) fetches
///   them. You can also [give](FireblocksKeys::given) a public key: then nothing is fetched, and the older
///   signature is accepted as well. The keys are the same for all customers: **a request to another customer can
///   be sent to you**. Check its `$.workspaceId` (likely).
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.eventType`.
#[doc = include_str!("../facts/fireblocks.md")]
pub fn fireblocks(keys: impl Into<SecretSource<FireblocksKeys>>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("fireblocks")
        .signature(Fireblocks::new(), keys.into().cast())
        .delivery_id(member("id"))
        .event_type(member("eventType"))
        .event_names_like(["vault_account.created"])
        .payload_version(member("eventVersion"))
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
}
