use http::HeaderName;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

/// [Svix](https://docs.svix.com/receiving/verifying-payloads/how) and providers
/// that send through it.
///
/// As [`standard_webhooks`](super::standard_webhooks()), with the headers `svix-id`,
/// `svix-timestamp` and `svix-signature`, which win over those of the specification.
///
/// - Redelivery: automatically for about 28 hours after any answer but a 2xx, and on request later;
///   the redelivery window is 30 days.
/// - Retry: signed at a new time under the same id, as in Svix's open source.
/// - Switched off: after all attempts have failed for 5 days.
pub fn svix(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::header(HeaderName::from_static("svix-id")).or(Source::header(ID));
    standard("svix", StandardWebhooks::svix(), secrets, id)
        .redelivery_window(30 * DAY)
        .retry(Retry::signed_anew())
}
