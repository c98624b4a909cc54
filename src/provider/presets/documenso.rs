use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Documenso](https://docs.documenso.com/docs/developers/webhooks/verification).
///
/// **Nothing is signed: whoever learns the secret can send any event.**
///
/// - Signature: none. `X-Documenso-Secret` has the secret of the webhook, as it is. It is empty if none
///   was set, which this preset rejects.
/// - Delivery id: `$.deliveryId`, **not** covered, as nothing is. Older versions of Documenso send none:
///   the key is then the SHA-256 of the body, in which `$.createdAt` is the time of the attempt. Event
///   type: `$.event`.
/// - Redelivery: a few attempts after any answer but a 2xx, by the job queue of the installation, and
///   on request in the log of the webhook; the redelivery window is 30 days.
/// - Retry: the same `$.deliveryId` and another `$.createdAt`, as Documenso's source has it. **A retry of
///   an older version, without `$.deliveryId`, runs the handler again.** Whether one on request has the
///   same id is not confirmed.
/// - Answer: any 2xx.
/// - Response deadline: 10 seconds.
/// - Handshake: none.
/// - Body limit: 2 MiB; Documenso publishes none.
pub fn documenso(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    let scheme = Token::header(HeaderName::from_static("x-documenso-secret"));
    Provider::custom("documenso")
        .signature(scheme, secrets)
        .delivery_id(member("deliveryId").or(Source::body_digest()))
        .event_type(member("event"))
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::identical().changes("`$.createdAt` (without `$.deliveryId`, the id too)"))
}
