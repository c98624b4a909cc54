use http::StatusCode;

use crate::provider::signature::{BasicAuth, BasicCredentials};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Chargebee](https://apidocs.chargebee.com/docs/api/events).
///
/// **Nothing is signed: anyone who learns the password can send any event.**
///
/// - Signature: none, only HTTP Basic authentication by [user and password](BasicCredentials).
/// - Delivery id: `$.id`, the id of the event. It is not covered, because nothing is signed. Event
///   type: `$.event_type`.
#[doc = include_str!("facts/chargebee.md")]
///
/// Two webhooks of one site send the same event id, so give each route its own endpoint name.
pub fn chargebee(credentials: impl Into<SecretSource<BasicCredentials>>) -> Provider {
    Provider::custom("chargebee")
        .signature(BasicAuth::new(), credentials.into().cast())
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("event_type")))
        .payload_version(Source::json(JsonPath::member("api_version")))
        .event_names_like(["subscription_created"])
        .success_status(StatusCode::OK)
}
