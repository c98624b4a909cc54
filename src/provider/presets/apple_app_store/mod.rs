use std::time::Duration;

use http::StatusCode;

use self::scheme::{AppStore, ID, TYPE};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

mod scheme;

/// [App Store Server Notifications V2](https://developer.apple.com/documentation/appstoreservernotifications)
/// of Apple. Feature `x509`.
///
/// - Signature: `$.signedPayload`, a JSON Web Signature with ES256. **Members beside it are not covered.** It
///   brings its certificates, which [`X509Chain`](crate::signature::X509Chain) checks: they must end at
///   *Apple Root CA - G3*, have Apple's extensions for receipts, and have been valid at the time of signing.
///   Whether a certificate is revoked is not checked. The secret is the bundle id, which is not secret: a
///   notification of another app is refused.
/// - **Sandbox**: a secret `<bundle id> Sandbox` takes notifications of the sandbox instead of production's.
///   Anyone with a test account can cause those, so let them have a route of their own.
/// - Keys: nothing is fetched. [`Provider::keys`](Provider::keys) with a certificate in PEM replaces Apple's
///   root, for tests.
/// - Tolerance: 30 days, on both sides, which is the redelivery window; Apple states none, nor whether a
///   retry is signed at a new time.
/// - Delivery id: `notificationUUID`, covered by the signature. Event type: `notificationType`.
/// - Redelivery: 5 times, 1, 12, 24, 48 and 72 hours after the attempt before; in the sandbox never. Apple's
///   API lists notifications of 180 days. The redelivery window is 30 days.
/// - Retry: the same `notificationUUID`. Whether it is signed anew is not documented.
/// - Answer: 200 to 206, so every success gets 200.
/// - Response deadline: not documented; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Apple publishes none.
///
/// The transaction in the payload (`signedTransactionInfo`) is signed in its own right. It is inside of what
/// is verified here, so reading it needs no second check.
pub fn apple_app_store(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("apple-app-store")
        .signature(AppStore::new(), secrets)
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::unknown())
}
