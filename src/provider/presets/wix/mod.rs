use std::time::Duration;

use http::StatusCode;

use self::scheme::{ID, TYPE, Wix};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

mod scheme;

/// [Wix](https://dev.wix.com/docs/rest/articles/get-started/webhook-structure)
/// apps. Feature `rsa`.
///
/// - Signature: the body is a JSON Web Token with RS256. The secret is the public key of the app in PEM, as
///   the dashboard shows it, or the base64 of that. The event is in the claim `data`: JSON text, whose member
///   `data` is JSON text again. **The handler gets the token as the body**, and decodes its second part.
/// - Tolerance: that of the token's `exp`, with a minute of leeway.
/// - Delivery id: `id` of the innermost JSON, covered by the signature. Event type: `eventType` beside it. The
///   older webhooks have no id, and are rejected with 400.
///   In a test, set the body to the innermost JSON.
/// - Redelivery: 12 times over about 47 hours: after a minute, 10 minutes and an hour, and then with intervals
///   of up to 12 hours. The redelivery window is 3 days.
/// - Retry: the same id. With a new token (likely); **if not, a retry is refused once the token has expired**.
/// - Answer: Wix takes 200 alone, so every success gets it.
/// - Response deadline: 1250 milliseconds. Let the layer accept deliveries before their first attempt where
///   the handler is slower ([`Keep::all`](crate::Keep::all)).
/// - Handshake: none.
/// - Body limit: 2 MiB; Wix publishes none.
pub fn wix(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("wix")
        .signature(Wix, secrets)
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .tolerance(Tolerance::unlimited())
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_millis(1250))
        .redelivery_window(3 * DAY)
        .retry(Retry::signed_anew().likely())
}
