//! Guarantee G13: the log gives the operator the reason, and never a secret, a signature or a body.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{DedupeTx, presets};
use tower_http::trace::TraceLayer;

use crate::support::{
    SECRET, TestApp, answer, assert_rows, gated, github, github_delivery, logged, now, secret,
    spawn_send, stripe, stripe_delivery, write_effect,
};

const BODY: &str = r#"{"id":"evt_1","card":"4242"}"#;

#[tokio::test]
async fn g13_a_rejection_is_logged_with_its_reason_and_without_the_unverified_id() {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    let missing = stripe_delivery(BODY).unsigned().request();
    let mut malformed = stripe(BODY, now());
    malformed
        .headers_mut()
        .insert("stripe-signature", "t=soon,v1=00".parse().unwrap());
    let wrong = stripe_delivery(r#"{"id":"forged","card":"4242"}"#);
    let wrong: Request<Body> = wrong.tampered().request();
    let signature = wrong.headers()["stripe-signature"].clone();
    let signature = signature.to_str().unwrap().split("v1=").last().unwrap();
    for (request, reason) in [
        (missing, "header stripe-signature is missing"),
        (malformed, "header stripe-signature is malformed"),
        (wrong, "signature matches none of the secrets"),
        (
            stripe(BODY, 1_000),
            "300 s are allowed (`tolerance`): is this clock right?",
        ),
        (stripe("{", now()), "the body is not valid JSON: EOF"),
    ] {
        let log = logged(async {
            app.send(request).await;
        })
        .await;
        assert!(log.contains(reason), "{reason}: {log}");
        assert!(log.contains("WARN"), "{log}");
        assert!(log.contains(r#"endpoint="test""#), "{log}");
        for hidden in [SECRET, signature, "4242", "forged"] {
            assert!(!log.contains(hidden), "{hidden}: {log}");
        }
    }
}

#[tokio::test]
async fn g13_an_authentic_delivery_is_logged_by_its_id() {
    async fn swallow(mut tx: DedupeTx) -> StatusCode {
        let _ = sqlx::query("select no_such_column").execute(&mut *tx).await;
        StatusCode::OK
    }
    async fn twice(_: DedupeTx, _: DedupeTx) {}

    let app = TestApp::github(write_effect).await;
    let send = async || {
        app.send(github("guid", BODY)).await;
    };
    let log = logged(send()).await;
    assert!(log.contains("webhook processed"), "{log}");
    assert!(log.contains(r#"delivery_id="guid""#), "{log}");
    let log = logged(send()).await;
    assert!(log.contains("webhook duplicate"), "{log}");
    assert!(!log.contains("WARN") && !log.contains("4242"), "{log}");

    for (app, advice) in [
        (
            TestApp::github(swallow).await,
            "run the statement in a savepoint",
        ),
        (
            TestApp::github(twice).await,
            "take it once and pass `&mut tx`",
        ),
    ] {
        let log = logged(async {
            app.send(github("guid", BODY)).await;
        })
        .await;
        assert!(log.contains(advice), "{log}");
        assert!(log.contains(r#"delivery_id="guid""#), "{log}");
        assert!(!log.contains("4242") && !log.contains(SECRET), "{log}");
    }
}

#[tokio::test]
async fn a_delivery_is_one_span_within_that_of_the_caller() {
    let mut app = TestApp::github(async || {
        tracing::info!(target: "idempotent_webhook_test", "in the handler");
    })
    .await;
    let caller = TraceLayer::new_for_http().make_span_with(
        |request: &Request<Body>| tracing::info_span!("request", uri = %request.uri()),
    );
    app.router = app.router.layer(caller);
    let log = logged(async {
        app.send(github("guid", "{}")).await;
    })
    .await;
    for message in ["in the handler", "webhook processed"] {
        let line = log.lines().find(|line| line.contains(message)).unwrap();
        for part in [
            r#"request{uri=/}:webhook{endpoint="test" provider="github""#,
            r#"delivery_id="guid""#,
            r#"event_type="push""#,
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    let last = log.lines().last().unwrap();
    assert!(last.contains(r#"outcome="processed""#), "{log}");
}

#[tokio::test]
async fn the_level_says_whether_somebody_should_look() {
    async fn fails() -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }
    async fn panics() {
        panic!("on purpose")
    }
    let app = TestApp::github(write_effect).await;
    let failing = TestApp::github(fails).await;
    let panicking = TestApp::github(panics).await;
    let forged = github_delivery().id("a").tampered().request();
    for (app, request, level, message) in [
        (&app, github("a", "{}"), "DEBUG", "webhook processed"),
        (&app, github("a", "{}"), "DEBUG", "webhook duplicate"),
        (&app, forged, "WARN", "webhook rejected"),
        (&failing, github("a", "{}"), "WARN", "webhook rolled back"),
        (&panicking, github("a", "{}"), "ERROR", "webhook failed"),
    ] {
        let log = logged(async {
            app.send(request).await;
        })
        .await;
        let line = log.lines().find(|line| line.contains(message)).unwrap();
        assert!(line.contains(level), "{line}");
        let reason = line.split_once("reason=").map(|(_, reason)| reason);
        assert!(
            reason.is_none_or(|reason| reason.starts_with('"')),
            "{line}"
        );
    }
}

/// `assert_idempotent` asks the layer for a rollback. The log must not show this as a failure.
#[tokio::test]
async fn a_rollback_that_a_test_asks_for_is_not_logged_as_a_failure() {
    let app = TestApp::github(write_effect).await;
    let log = logged(assert_idempotent(
        &app.router,
        &github_delivery(),
        async || app.database.rows().await.effects,
    ))
    .await;
    assert!(log.contains("because a test asked for it"), "{log}");
    assert!(!log.contains("did not answer success"), "{log}");
}

/// Behind a proxy, the scheme of the URL is the usual mistake.
#[tokio::test]
async fn g13_a_mismatch_names_the_url_if_that_is_signed() {
    let twilio = presets::twilio(secret());
    let called = twilio
        .clone()
        .public_url("https://example.com".parse().unwrap());
    let request = || {
        TestDelivery::new(&called)
            .uri("/hooks?token=hunter2")
            .request()
    };
    let configured = "http://user:hunter2@example.com".parse().unwrap();
    let app = TestApp::of(twilio.public_url(configured), write_effect).await;
    let log = logged(async {
        let mut request: Request<Body> = request();
        *request.uri_mut() = "/?token=hunter2".parse().unwrap();
        assert_eq!(app.send(request).await.status, 401);
    })
    .await;
    let hint = "a body that was changed on the way, or another URL than http://redacted@example.com/... (`public_url`)";
    assert!(log.contains(hint), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
    // GitHub's signature does not depend on the URL.
    let github = presets::github(secret()).public_url("https://example.com".parse().unwrap());
    let app = TestApp::of(github, write_effect).await;
    let log = logged(async {
        app.send(github_delivery().id("a").tampered().request())
            .await;
    })
    .await;
    assert!(
        log.contains("a body that was changed on the way\""),
        "{log}"
    );
}

/// If the process is killed while the handler runs, the log still shows the delivery.
#[tokio::test]
async fn a_delivery_is_logged_before_its_handler_runs() {
    let (mut gate, handler) = gated();
    let app = TestApp::github(handler).await;
    let log = logged(async {
        let running = spawn_send(&app.router, github("guid", "{}"));
        gate.reached().await;
        tracing::info!(target: "idempotent_webhook_test", "in the handler");
        gate.open();
        assert_eq!(running.await.unwrap(), answer(200, "processed", ""));
        // A delivery is not logged before its signature is verified.
        let forged = github_delivery().id("forged").tampered();
        app.send(forged.request()).await;
    })
    .await;
    let (before, after) = log.split_once("in the handler").unwrap();
    let received = |log: &str| log.matches("webhook received").count();
    assert_eq!((received(before), received(after)), (1, 0), "{log}");
    let line = before
        .lines()
        .find(|line| line.contains("webhook received"));
    for part in ["DEBUG", r#"endpoint="test""#, r#"delivery_id="guid""#] {
        assert!(line.unwrap().contains(part), "{log}");
    }
    assert_rows!(app.database, claims: 1, effects: 1);
}
