use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderName, StatusCode};

use crate::provider::signature::{ByHeader, Hmac, Token, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [RevenueCat](https://www.revenuecat.com/docs/integrations/webhooks).
///
/// **With an authorization value, nothing is signed: whoever learns it can send any event.** Switch
/// on the signing of the webhook, and give its signing secret instead.
///
/// - Signature: `X-RevenueCat-Webhook-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the signing secret (second-hand). There are several `v1` while a secret is
///   rotated, and one matching signature is enough. Without that header, `Authorization`, which has
///   the value that was configured, as it is: with `Bearer ` only if that is part of it. **Once
///   the signing secret is the only one, the authorization value alone is refused.**
/// - Tolerance: 7 days, on both sides, which is the redelivery window; none for an authorization
///   value. RevenueCat takes 5 minutes and signs each retry at a new time (both second-hand).
/// - Delivery id: `$.event.id`, covered by the signature, if there is one. Two webhooks of a project
///   likely get the same one, so give each route an endpoint name of its own. Event type:
///   `$.event.type`.
#[doc = include_str!("facts/revenuecat.md")]
pub fn revenuecat(secrets: impl Into<SecretSource>) -> Provider {
    let signature = HeaderName::from_static("x-revenuecat-webhook-signature");
    // One secret serves for both: who can send it as the value could make the HMAC.
    let scheme = ByHeader::new(
        signature.clone(),
        Hmac::timestamped(signature),
        Token::header(AUTHORIZATION),
    );
    let of_event = |name| Source::json(JsonPath::member("event").then(name));
    Provider::custom("revenuecat")
        .signature(scheme, secrets)
        .delivery_id(of_event("id"))
        .event_type(of_event("type"))
        .event_names_like(["INITIAL_PURCHASE"])
        .payload_version(Source::json(JsonPath::member("api_version")))
        .tolerance(Tolerance::two_sided(7 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(60))
        .redelivery_window(7 * DAY)
}
