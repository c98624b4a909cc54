use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Webflow](https://developers.webflow.com/data/docs/working-with-webhooks).
///
/// - Signature: `x-webflow-signature: <hex>`, an HMAC-SHA256 of `<time>:<body>`, with the time in
///   milliseconds in `x-webflow-timestamp`. The secret is the OAuth app's client secret, or the
///   webhook's own key.
/// - Tolerance: one day in the past, any time in the future. The limit is the redelivery window; Webflow's SDK does not
///   check the time.
/// - Delivery id: none is sent. The preset uses the signed time and the SHA-256 of the body, covered by the
///   signature. The body alone would be wrong: for `ecomm_inventory_changed`, it is an item and its quantity, so
///   the second event with 4 left would be lost. Event type: `$.triggerType`.
#[doc = include_str!("facts/webflow.md")]
pub fn webflow(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-webflow-signature"))
        .timestamp_header(HeaderName::from_static("x-webflow-timestamp"))
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().timestamp().text(":").body());
    Provider::custom("webflow")
        .signature(scheme, secrets)
        .delivery_id(Source::signed_time().and(Source::body_digest()))
        .event_type(Source::json(JsonPath::member("triggerType")))
        .event_names_like(["form_submission"])
        .tolerance(Tolerance::past_only(DAY))
        .success_status(StatusCode::OK)
        .redelivery_window(DAY)
}
