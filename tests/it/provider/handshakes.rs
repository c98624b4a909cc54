//! Handshakes, which the layer answers after verification, without a claim.

use axum::body::Body;
use axum::http::{Request, header::CONTENT_TYPE};
use idempotent_webhook::presets;
use idempotent_webhook::testing::TestDelivery;
use tower::ServiceExt;

use crate::support::{TestApp, answer, assert_rows, secret, write_effect};

fn slack_delivery() -> TestDelivery {
    TestDelivery::new(&presets::slack(secret()))
}

fn verification() -> TestDelivery {
    slack_delivery()
        .event_type("url_verification")
        .body(r#"{"token":"t","challenge":"3eZbrw1aBm2r","type":"url_verification"}"#)
}

#[tokio::test]
async fn slacks_url_verification_is_answered_with_its_challenge() {
    let app = TestApp::of(presets::slack(secret()), write_effect).await;
    for _ in 0..2 {
        assert_eq!(
            app.send(verification().request()).await,
            answer(200, "handshake", "3eZbrw1aBm2r")
        );
    }
    let request: Request<Body> = verification().request();
    let response = app.router.clone().oneshot(request).await.unwrap();
    assert_eq!(
        response.headers()[CONTENT_TYPE],
        "text/plain; charset=utf-8"
    );
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g1_a_forged_handshake_gets_no_answer() {
    let app = TestApp::of(presets::slack(secret()), write_effect).await;
    let sent = verification();
    for forged in [sent.tampered(), sent.unsigned(), sent.expired()] {
        assert_eq!(
            app.send(forged.request()).await,
            answer(401, "rejected", "signature missing or not valid")
        );
    }
}

#[tokio::test]
async fn an_event_with_an_id_is_no_handshake_whatever_it_says() {
    let app = TestApp::of(presets::slack(secret()), write_effect).await;
    let event =
        slack_delivery().body(r#"{"event_id":"Ev1","challenge":"c","type":"url_verification"}"#);
    assert_eq!(
        app.send(event.request()).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}
