use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{HOUR, MIB, Provider, SecretSource, Source};

/// [Shopify](https://shopify.dev/docs/apps/build/webhooks), with both families of headers:
/// `X-Shopify-*`, and the `shopify-*` of its newer events, which takes precedence.
///
/// - Signature: `X-Shopify-Hmac-Sha256: <base64>`, an HMAC-SHA256 of the body under the app's
///   client secret.
/// - Delivery id: `X-Shopify-Webhook-Id`, **not** covered by the signature. `X-Shopify-Event-Id` would be wrong: it is
///   the same in the deliveries of an event to all subscriptions, so all these deliveries except the first would be
///   dropped. Event type: `X-Shopify-Topic`, also **not** covered.
/// - Action: `shopify-action` of the newer events, as in `Product.update`; **not** covered by the signature.
/// - Version: the version of the payload, **not** covered by the signature. Once a subscription's version is no
///   longer supported, Shopify moves the subscription to the oldest supported version, and the header shows that
///   version.
/// - Groups: `orders/*`. Four topics contain a dot instead of a slash: `customer.tags_added`,
///   `customer.tags_removed`, `customer.joined_segment` and `customer.left_segment`.
#[doc = include_str!("facts/shopify.md")]
pub fn shopify(secrets: impl Into<SecretSource>) -> Provider {
    let either = |newer, older| {
        Source::header(HeaderName::from_static(newer))
            .or(Source::header(HeaderName::from_static(older)))
    };
    let scheme = Hmac::base64(HeaderName::from_static("shopify-hmac-sha256"))
        .or_header(HeaderName::from_static("x-shopify-hmac-sha256"));
    Provider::custom("shopify")
        .signature(scheme, secrets)
        .delivery_id(either("shopify-webhook-id", "x-shopify-webhook-id"))
        .event_type(either("shopify-topic", "x-shopify-topic"))
        .event_action(Source::header(HeaderName::from_static("shopify-action")))
        .event_names_like([
            "orders/create",
            "app_subscriptions/update",
            "Product",
            "Product.update",
        ])
        .and_event_names(&[
            "customer.joined_segment",
            "customer.left_segment",
            "customer.tags_added",
            "customer.tags_removed",
        ])
        .payload_version(either("shopify-api-version", "x-shopify-api-version"))
        .body_limit(8 * MIB)
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(24 * HOUR)
}
