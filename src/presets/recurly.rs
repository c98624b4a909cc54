use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Recurly](https://docs.recurly.com/recurly-subscriptions/docs/webhooks): webhooks in JSON.
/// Webhooks in XML are **not signed**, and this preset rejects them.
///
/// - Signature: `recurly-signature: <time>,<hex>`, an HMAC-SHA256 of `<time>.<body>`. Further
///   signatures may follow after commas; one matching signature is enough. The time is in
///   milliseconds in Recurly's SDK and in seconds in its sample; both are accepted.
/// - Tolerance: 30 days on both sides, equal to the redelivery window, because a retry may carry
///   the timestamp of the first attempt: no source says that it carries a new one. Recurly's SDK
///   allows 300 seconds. A replay is still recognized as a duplicate.
/// - Delivery id: none; `$.id` is the id of the resource. The preset uses the SHA-256 of the body,
///   which is covered by the signature; `$.event_time` makes each body unique. Event type:
///   `$.object_type`, such as `charge_invoice`.
/// - Action: `$.event_type`, as in `charge_invoice.paid`.
#[doc = include_str!("facts/recurly.md")]
pub fn recurly(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("recurly-signature"))
        .separator(",")
        .timestamp_field("")
        .timestamp_in_seconds_or_milliseconds();
    Provider::custom("recurly")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("object_type")))
        .event_action(Source::json(JsonPath::member("event_type")))
        .event_names_like(["charge_invoice", "charge_invoice.past_due"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .response_deadline(Duration::from_secs(5))
}
