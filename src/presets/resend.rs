use http::HeaderName;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Resend](https://resend.com/docs/dashboard/webhooks/introduction), which sends through Svix.
///
/// - Signature: `svix-signature` or, if it is absent, `webhook-signature`, see
///   [`StandardWebhooks`].
/// - Tolerance: 300 seconds on both sides of `svix-timestamp`.
/// - Delivery id: `svix-id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/resend.md")]
pub fn resend(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::header(HeaderName::from_static("svix-id")).or(Source::header(ID));
    standard("resend", StandardWebhooks::svix(), secrets, id)
        .event_names_like(["email.delivery_delayed"])
        .redelivery_window(30 * DAY)
}
