use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderName, StatusCode};

use crate::provider::signature::{ByHeader, Hmac, Token, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [RevenueCat](https://www.revenuecat.com/docs/integrations/webhooks).
///
/// **With an authorization value, nothing is signed: anyone who learns it can send any event.**
/// Switch on signing for the webhook, and configure its signing secret instead.
///
/// - Signature: `X-RevenueCat-Webhook-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of `<time>.<body>` under the
///   signing secret (second-hand). While a secret is rotated, there are several `v1`, and one matching signature
///   is enough. Without that header, `Authorization`, which carries the configured value verbatim, with `Bearer `
///   only if that is part of the value. **Once the signing secret is the only configured secret, a request with
///   only the authorization value is refused.**
/// - Tolerance: 7 days on both sides, equal to the redelivery window; with an authorization value,
///   no time is checked. RevenueCat allows 5 minutes, and signs each retry with a new timestamp
///   (both second-hand).
/// - Delivery id: `$.event.id`, covered by the signature, if the request is signed. Two webhooks of
///   a project likely get the same id, so give each route its own endpoint name. Event type:
///   `$.event.type`.
#[doc = include_str!("facts/revenuecat.md")]
pub fn revenuecat(secrets: impl Into<SecretSource>) -> Provider {
    let signature = HeaderName::from_static("x-revenuecat-webhook-signature");
    // A secret works for both: a sender who knows it as the authorization value could also compute
    // the HMAC.
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
