use std::time::Duration;

use crate::provider::signature::BasicAuth;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Chargebee](https://apidocs.chargebee.com/docs/api/events).
///
/// **Nothing is signed: whoever learns the password can send any event.**
///
/// - Signature: none, but HTTP Basic authentication. The secret is `<user>:<password>`.
/// - Delivery id: `$.id`, the id of the event. It is not covered, as nothing is. Event type:
///   `$.event_type`.
/// - Redelivery: for about 2 days (not confirmed); the redelivery window is 7 days.
/// - Response deadline: Chargebee's is not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Chargebee publishes none.
///
/// Two webhooks of one site bring the same event id, so give each route an endpoint name of its
/// own.
pub fn chargebee(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("chargebee")
        .signature(BasicAuth::new(), secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("event_type")))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
}
