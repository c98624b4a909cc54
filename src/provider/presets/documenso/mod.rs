use std::time::Duration;

use self::scheme::{Documenso, EVENT};
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Documenso](https://docs.documenso.com/docs/developers/webhooks/verification).
///
/// **Nothing is signed: whoever learns the secret can send any event.**
///
/// - Signature: none. `X-Documenso-Secret` has the secret of the webhook, as it is. It is empty if none
///   was set, which this preset rejects.
/// - Delivery id: a SHA-256 of the members of the body but `createdAt`, which is the time of the
///   attempt. Documenso sends no id. It is not covered, as nothing is. Event type: `$.event`.
/// - Redelivery: a few attempts after any answer but a 2xx, by the job queue of the installation, and
///   on request in the log of the webhook; the redelivery window is 30 days.
/// - Retry: `$.createdAt` is another one; the rest stays, as Documenso's source has it.
/// - Answer: any 2xx.
/// - Response deadline: 10 seconds.
/// - Handshake: none.
/// - Body limit: 2 MiB; Documenso publishes none.
pub fn documenso(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("documenso")
        .signature(Documenso::new(), secrets)
        .delivery_id(Source::signed_value(EVENT))
        .event_type(Source::json(JsonPath::member("event")))
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::identical().changes("`$.createdAt`"))
}
