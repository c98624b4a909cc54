use http::HeaderName;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Svix](https://docs.svix.com/receiving/verifying-payloads/how) and providers
/// that send through it.
///
/// Like [`standard_webhooks`](super::standard_webhooks()), but with the headers `svix-id`,
/// `svix-timestamp` and `svix-signature`, which take precedence over the headers of the
/// specification.
///
#[doc = include_str!("facts/svix.md")]
pub fn svix(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::header(HeaderName::from_static("svix-id")).or(Source::header(ID));
    standard("svix", StandardWebhooks::svix(), secrets, id).redelivery_window(30 * DAY)
}
