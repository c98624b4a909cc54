use http::StatusCode;

use self::scheme::{AppStore, ID, TYPE};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod app;
mod scheme;

pub use app::AppStoreApp;

/// [App Store Server Notifications V2](https://developer.apple.com/documentation/appstoreservernotifications)
/// of Apple. Feature `x509`.
///
/// - Signature: `$.signedPayload`, a JSON Web Signature with ES256. **Members beside it are not covered.** It
///   brings its certificates, which [`X509Chain`](crate::provider::signature::X509Chain) checks: they must end at
///   *Apple Root CA - G3*, have Apple's extensions for receipts, and have been valid at the time of signing.
///   Whether a certificate is revoked is not checked. A notification of another [app](AppStoreApp) is refused.
/// - **Sandbox**: [`AppStoreApp::sandbox`] takes notifications of the sandbox instead of production's.
///   Anyone with a test account can cause those, so let them have a route of their own.
/// - Keys: nothing is fetched. [`Provider::keys`](Provider::keys) with a certificate in PEM replaces Apple's
///   root, for tests.
/// - Tolerance: 30 days, on both sides, which is the redelivery window; Apple states none, nor whether a
///   retry is signed at a new time.
/// - Delivery id: `notificationUUID`, covered by the signature. Event type: `notificationType`.
#[doc = include_str!("../facts/apple-app-store.md")]
///
/// The transaction in the payload (`signedTransactionInfo`) is signed in its own right. It is inside of what
/// is verified here, so reading it needs no second check.
pub fn apple_app_store(apps: impl Into<SecretSource<AppStoreApp>>) -> Provider {
    Provider::custom("apple-app-store")
        .signature(AppStore::new(), apps.into().cast())
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .event_names_like(["EXTERNAL_PURCHASE_TOKEN"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
}
