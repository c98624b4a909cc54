use http::HeaderName;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

/// [Resend](https://resend.com/docs/dashboard/webhooks/introduction), which sends through Svix.
///
/// - Signature: `svix-signature`, or `webhook-signature` if it is absent, see [`StandardWebhooks`].
/// - Tolerance: 300 seconds, on both sides, of `svix-timestamp`.
/// - Delivery id: `svix-id`, covered by the signature. Event type: `$.type`.
/// - Redelivery: after 5 seconds, 5 and 30 minutes, 2, 5, 10 and 10 hours, and by hand; the redelivery
///   window is 30 days.
/// - Retry: signed at a new time, as Svix has it, with the same id. So is one by hand: of what was
///   processed, it is a duplicate.
/// - Response deadline: 15 seconds.
/// - Body limit: 2 MiB.
pub fn resend(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::header(HeaderName::from_static("svix-id")).or(Source::header(ID));
    standard("resend", StandardWebhooks::svix(), secrets, id)
        .redelivery_window(30 * DAY)
        .retry(Retry::signed_anew())
}
