use http::StatusCode;

use self::scheme::{AppStore, ID, TYPE};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod app;
mod scheme;

pub use app::AppStoreApp;

/// [App Store Server Notifications V2](https://developer.apple.com/documentation/appstoreservernotifications) of
/// Apple. Requires the feature `x509`.
///
/// - Signature: `$.signedPayload`, a JSON Web Signature with ES256. **Other members of the body are not covered.**
///   The signature contains its certificates, which [`X509Chain`](crate::provider::signature::X509Chain) checks:
///   they must end at *Apple Root CA - G3*, have Apple's extensions for receipts, and have been valid at the time
///   of signing. Revocation is not checked. A notification for another [app](AppStoreApp) is refused.
/// - **Sandbox**: [`AppStoreApp::sandbox`] accepts notifications from the sandbox instead of from production.
///   Anyone with a test account can cause sandbox notifications, so give them their own route.
/// - Keys: nothing is fetched. In tests, [`Provider::keys`](Provider::keys) with a certificate in PEM replaces
///   Apple's root.
/// - Tolerance: 30 days on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: Apple documents neither a tolerance nor whether a retry is signed with a new timestamp.
/// - Delivery id: `notificationUUID`, covered by the signature. Event type: `notificationType`.
#[doc = include_str!("../facts/apple-app-store.md")]
///
/// The transaction in the payload (`signedTransactionInfo`) has its own signature. This preset verifies the
/// notification around it, so you can read the transaction without a second check.
pub fn apple_app_store(apps: impl Into<SecretSource<AppStoreApp>>) -> Provider {
    Provider::custom("apple-app-store")
        .signature(AppStore::new(), apps.into().cast())
        .delivery_id(Source::signed_value(ID))
        .event_type(Source::signed_value(TYPE))
        .event_names_like(["EXTERNAL_PURCHASE_TOKEN"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
}
