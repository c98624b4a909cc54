use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Segment](https://segment.com/docs/connections/destinations/catalog/webhooks/): the destination
/// *Webhooks*. Requires the feature `sha1`.
///
/// - Signature: `X-Signature: <hex>`, an HMAC-SHA1 of the body.
/// - Delivery id: `$.messageId`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/segment.md")]
///
/// A body without a `messageId` is refused. Some of Segment's own samples have none, for example the sample of a
/// deletion. If your bodies lack it as well, add [`Source::body_digest`] to the
/// [`delivery_id`](Provider::delivery_id) with [`or`](Source::or).
///
/// **In a batch, the signature covers only the first event**, serialized again by Segment: anyone
/// who has captured a batch can change the other events. This preset verifies the body as it is, so
/// it rejects batches. Switch batching off.
pub fn segment(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature")).hash(Hash::Sha1);
    Provider::custom("segment")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("messageId")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["identify"])
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
}
