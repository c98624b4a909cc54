use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Help Scout](https://developer.helpscout.com/webhooks/). Requires the feature `sha1`.
///
/// - Signature: `X-HelpScout-Signature: <base64>`, an HMAC-SHA1 of the body under the secret key of the
///   webhook.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]). The body is the current state of
///   the conversation or the customer, so a tag that is set, removed and set again may send the same body twice.
///   With `notification`, the body is only a link. A retry runs the handler again, and so does a captured request.
///   Let the handler ask Help Scout for the object. Event type: `X-HelpScout-Event`, **not** covered by the
///   signature.
#[doc = include_str!("facts/help-scout.md")]
pub fn help_scout(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-helpscout-signature")).hash(Hash::Sha1);
    Provider::custom("help-scout")
        .signature(scheme, secrets)
        .delivery_id(Source::receipt())
        .event_type(Source::header(HeaderName::from_static("x-helpscout-event")))
        .event_names_like(["convo.created", "convo.custom-fields"])
        .body_limit(10 * crate::provider::MIB)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(7 * DAY)
}
