use std::time::Duration;

use http::StatusCode;

use self::scheme::{EVENT, ID, Maxio};
use crate::provider::{Provider, SecretSource, Source};

mod scheme;

/// [Maxio Advanced Billing](https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks-Overview),
/// formerly Chargify.
///
/// - Signature: `X-Chargify-Webhook-Signature-Hmac-Sha-256: <hex>`, an HMAC-SHA256 of the body under the site's
///   shared key (second-hand). `X-Chargify-Webhook-Signature`, which is an MD5, is ignored.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: the form field `id`, covered by the signature. `X-Chargify-Webhook-Id` has the same value, but
///   is not covered. Event type: the form field `event`.
#[doc = include_str!("../facts/maxio.md")]
pub fn maxio(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("maxio")
        .signature(Maxio::new(), secrets)
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(EVENT))
        .event_names_like(["payment_failure"])
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(15))
}
