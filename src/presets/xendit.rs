use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Xendit](https://docs.xendit.co/apidocs/webhook-behavior).
///
/// **Nothing is signed: anyone who learns the token can send any event.**
///
/// - Signature: none. `x-callback-token` carries the account's verification token verbatim.
/// - Delivery id: a SHA-256 of all members of the body except `created`, which in Payments API webhooks is the
///   time of the attempt. It is not covered, because nothing is signed. No member is known to be an event id:
///   `$.id` and `$.data.id` name the payment. Event type: `$.event`, which webhooks of invoices and other older
///   products lack.
#[doc = include_str!("facts/xendit.md")]
pub fn xendit(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Token::header(HeaderName::from_static("x-callback-token"));
    Provider::custom("xendit")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest_without("created"))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["payment.capture", "payment_method.activated"])
        .payload_version(Source::json(JsonPath::member("api_version")))
        .response_deadline(Duration::from_secs(30))
}
