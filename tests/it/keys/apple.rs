//! Certificates in the request itself, as in the App Store's requests.

use axum::body::Body;
use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use idempotent_webhook::presets::{self, AppStoreApp};
use idempotent_webhook::provider::keys::KeySource;
use serde_json::Value;

use super::REFUSED;
use crate::support::{TestApp, answer, assert_rows, logged, write_effect};

/// Independent test vectors with the certificate chains.
const CASES: &str = include_str!("../../vectors/apple_app_store.json");

#[tokio::test]
async fn f2_a_forged_chain_is_refused_with_its_reason_in_the_log() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    for (name, reason) in [
        ("other-root", "does not end at the provider's root"),
        (
            "other-root-right-root-named",
            "does not end at the provider's root",
        ),
        ("leaf-as-issuer", "lacks an extension"),
        ("intermediate-no-ca", "does not end at the provider's root"),
        ("intermediate-expired", "a certificate had expired"),
        ("leaf-not-yet-valid", "a certificate was not valid yet"),
        ("leaf-without-marker", "lacks an extension"),
        ("x5c-two", "longer or shorter"),
        ("alg-none", "another algorithm"),
        ("alg-confusion-hs256", "another algorithm"),
        ("wrong-bundle-id", "another app"),
        ("sandbox-at-production", "another environment"),
    ] {
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        let text = |member: &str| case[member].as_str().unwrap();
        // The test's own root certificate, as in the vectors. The tolerance is so large that no
        // signing time is too old.
        let provider = presets::apple_app_store(text("secret").parse::<AppStoreApp>().unwrap())
            .keys(KeySource::given(text("keys")).unwrap())
            .tolerance(idempotent_webhook::provider::signature::Tolerance::unlimited());
        let app = TestApp::of(provider, write_effect).await;
        let body = BASE64.decode(text("body_base64")).unwrap();
        let log = logged(async {
            let request = Request::post("/").body(Body::from(body)).unwrap();
            assert_eq!(
                app.send(request).await,
                answer(401, "rejected", REFUSED),
                "{name}"
            );
        })
        .await;
        assert!(log.contains(reason), "{name}: {log}");
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}
