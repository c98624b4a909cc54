use std::time::Duration;

use http::StatusCode;

use crate::provider::signature::BasicAuth;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Chargebee](https://apidocs.chargebee.com/docs/api/events).
///
/// **Nothing is signed: whoever learns the password can send any event.**
///
/// - Signature: none, but HTTP Basic authentication. The secret is `<user>:<password>`.
/// - Delivery id: `$.id`, the id of the event. It is not covered, as nothing is. Event type:
///   `$.event_type`.
/// - Redelivery: 7 times over about 3 days, and on request later; the redelivery window is 30 days.
/// - Retry: the same `$.id`; nothing else is documented.
/// - Answer: 200 alone by an older document, any 2xx by a newer one, so every success gets 200.
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
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::unknown())
}
