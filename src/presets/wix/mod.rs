use std::time::Duration;

use http::StatusCode;

use self::scheme::{ID, TYPE, Wix};
use crate::presets::PublicKey;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Wix](https://dev.wix.com/docs/rest/articles/get-started/webhook-structure) apps. Requires the
/// feature `rsa`.
///
/// - Signature: the body is a JSON Web Token with RS256. The [`PublicKey`] is the app's key in PEM, as the Wix
///   dashboard shows it, or the base64 of that PEM. The event is in the claim `data`: JSON text, whose member
///   `data` is again JSON text. **The handler gets the token as the body**, and has to decode its second part.
/// - Tolerance: until the token's `exp`, plus a minute of leeway.
/// - Delivery id: `id` of the innermost JSON, covered by the signature. Event type: `eventType` next to it.
///   `AppInstalled`, `AppRemoved` and the older webhooks have no id; they get a [receipt](Source::receipt)
///   instead, so **a retry of such a webhook runs the handler again**. In a test, set the innermost JSON as the
///   body.
#[doc = include_str!("../facts/wix.md")]
pub fn wix(keys: impl Into<SecretSource<PublicKey>>) -> Provider {
    Provider::custom("wix")
        .signature(Wix, keys.into().cast())
        .delivery_id(Source::signed_value(ID).or(Source::receipt()))
        .event_type(Source::signed_value(TYPE))
        .event_names_like(["AppInstalled", "wix.contacts.v4.contact_created"])
        .tolerance(Tolerance::unlimited())
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_millis(1250))
        .redelivery_window(3 * DAY)
}
