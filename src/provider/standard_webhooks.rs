use std::time::Duration;

use http::HeaderName;

use super::{DAY, Provider};
use crate::json_path::JsonPath;
use crate::signature::{StandardWebhooks, Tolerance};
use crate::source::Source;
use crate::tenant::Keys;

const ID: HeaderName = HeaderName::from_static("webhook-id");

impl Provider {
    /// Any provider that follows [Standard Webhooks](https://www.standardwebhooks.com).
    ///
    /// - Signature: `webhook-signature`, see [`StandardWebhooks`] for its versions and
    ///   secrets.
    /// - Tolerance: 300 seconds, to both sides, of `webhook-timestamp`.
    /// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
    /// - Redelivery: up to the provider, so the redelivery window is 30 days.
    /// - Response deadline: 15 seconds, the least that the specification asks of senders.
    /// - Body limit: 2 MiB.
    pub fn standard_webhooks(keys: impl Into<Keys>) -> Self {
        Self::standard(
            "standard-webhooks",
            StandardWebhooks::new(),
            keys,
            Source::header(ID),
        )
        .redelivery_window(30 * DAY)
    }

    /// [Svix](https://docs.svix.com/receiving/verifying-payloads/how) and those who send
    /// through it.
    ///
    /// As [`standard_webhooks`](Self::standard_webhooks), with the headers `svix-id`,
    /// `svix-timestamp` and `svix-signature`, which win over those of the specification.
    /// Svix itself delivers again for about 28 hours, and at somebody's request later: the
    /// redelivery window is 30 days.
    pub fn svix(keys: impl Into<Keys>) -> Self {
        let id = Source::header(HeaderName::from_static("svix-id")).or(Source::header(ID));
        Self::standard("svix", StandardWebhooks::svix(), keys, id).redelivery_window(30 * DAY)
    }

    fn standard(
        name: &'static str,
        scheme: StandardWebhooks,
        keys: impl Into<Keys>,
        id: Source,
    ) -> Self {
        Self::custom(name)
            .signature(scheme, keys)
            .delivery_id(id)
            .event_type(Source::json(JsonPath::member("type")))
            .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
            .response_deadline(Duration::from_secs(15))
    }
}
