use self::scheme::Cloudinary;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

mod scheme;

/// [Cloudinary](https://cloudinary.com/documentation/notification_signatures). Requires the feature
/// `sha1`.
///
/// - Signature: `X-Cld-Signature: <hex>`, the SHA-1 or, if the account is set to it, the SHA-256 of the body,
///   `X-Cld-Timestamp` and the API secret, concatenated. **This is not an HMAC**: with SHA-1, somebody who can
///   make Cloudinary sign a chosen text might find another text with the same signature. Both hashes are accepted.
/// - Tolerance: 1 day in the past, any time in the future. The limit is the redelivery window, because a retry may
///   carry the timestamp of the first attempt: no source says that it carries a new one. Cloudinary's SDKs allow 2
///   hours.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.timestamp` and `$.request_id` make each body unique (not confirmed). Event type:
///   `$.notification_type`.
#[doc = include_str!("../facts/cloudinary.md")]
pub fn cloudinary(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("cloudinary")
        .signature(Cloudinary, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("notification_type")))
        .event_names_like(["resource_tags_changed"])
        .tolerance(Tolerance::past_only(DAY))
        .body_limit(4 * MIB)
        .redelivery_window(DAY)
}
