use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Xendit](https://docs.xendit.co/apidocs/webhook-behavior).
///
/// **Nothing is signed: whoever learns the token can send any event.**
///
/// - Signature: none. `x-callback-token` has the verification token of the account, as it is.
/// - Delivery id: a SHA-256 of the members of the body but `created`, which is the time of the attempt in the webhooks of
///   the Payments API. It is not covered, as nothing is. No member is known to be the id of an event: `$.id` and
///   `$.data.id` name the payment. Event type: `$.event`, which the webhooks of invoices and other older products lack.
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
