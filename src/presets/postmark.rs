use http::{HeaderName, StatusCode};

use crate::provider::signature::{BasicAuth, BasicCredentials};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Postmark](https://postmarkapp.com/developer/webhooks/webhooks-overview).
///
/// **Nothing is signed: anyone who learns the password can send any event.**
///
/// - Signature: none, only HTTP Basic authentication by the [user and the password](BasicCredentials) in the URL
///   that is set in Postmark.
/// - Delivery id: `X-PM-Webhook-Trace-Id`, or the SHA-256 of the body if that header is absent.
///   Only bounces have an id in the body, and one message has several events. Event type:
///   `$.RecordType`, which inbound messages lack.
#[doc = include_str!("facts/postmark.md")]
pub fn postmark(credentials: impl Into<SecretSource<BasicCredentials>>) -> Provider {
    Provider::custom("postmark")
        .signature(BasicAuth::new(), credentials.into().cast())
        .delivery_id(
            Source::header(HeaderName::from_static("x-pm-webhook-trace-id"))
                .or(Source::body_digest()),
        )
        .event_type(Source::json(JsonPath::member("RecordType")))
        .event_names_like(["SpamComplaint"])
        .body_limit(50 * crate::provider::MIB)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(7 * DAY)
}
