use http::HeaderName;

use super::standard_webhooks::standard;
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Clerk](https://clerk.com/docs/guides/development/webhooks/overview), which sends through Svix.
///
/// - Signature: `svix-signature`, see [`StandardWebhooks`]. The headers `webhook-*` are ignored, as in Clerk's
///   SDK.
/// - Tolerance: 300 seconds on both sides of `svix-timestamp`.
/// - Delivery id: `svix-id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/clerk.md")]
pub fn clerk(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::header(HeaderName::from_static("svix-id"));
    standard("clerk", StandardWebhooks::only_svix(), secrets, id)
        .event_names_like(["organizationMembership.created"])
        .redelivery_window(30 * DAY)
}
