use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Stripe](https://docs.stripe.com/webhooks): snapshot and thin (v2) events.
///
/// - Signature: `Stripe-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the whole `whsec_…` string. Any of several `v1` may
///   match; other schemes are skipped.
/// - Tolerance: 300 seconds, past only, as in Stripe's SDKs.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.type`. An endpoint that gets
///   both the snapshot and the thin event of a change gets two ids.
/// - Redelivery: after any answer but a 2xx, redirects included, automatically for up to 3 days,
///   with the CLI for up to 30 days; the redelivery window is 30 days.
/// - Retry: signed at a new time under the same `$.id`, as Stripe documents.
/// - Response deadline: Stripe does not publish one; 10 seconds are assumed.
/// - Body limit: 2 MiB.
///
/// Each endpoint of an account has its own secret, and so have live and test mode.
pub fn stripe(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("stripe-signature"));
    Provider::custom("stripe")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
        .redelivery_window(30 * DAY)
        .retry(Retry::signed_anew())
}
