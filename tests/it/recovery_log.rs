//! What an operator learns of recovery from the log.

use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::recovery::Retried;
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Recovery, presets};
use sqlx::Executor;
use tower_http::trace::TraceLayer;

use crate::recovery::{Failing, NOTHING_KEPT, SOON, endpoint, keep, recover};
use crate::support::{
    Database, TestApp, answer, assert_rows, github, github_delivery, let_pass, logged, secret,
    send, until_logged, write_effect,
};

/// Longer than a process waits for another one to say that it is there.
const PATIENCE: Duration = Duration::from_secs(11);

const NOBODY: &str = "no process runs them again";

#[tokio::test]
async fn r17_that_nobody_runs_what_is_kept_is_a_warning() {
    for set in [keep, |layer| keep(layer).accept_first()] {
        let app = TestApp::github_with(set, Failing::times(9).handler()).await;
        let log = logged(async {
            for id in ["a", "b"] {
                app.send(github(id, "{}")).await;
            }
            let_pass(PATIENCE).await;
            until_logged(NOBODY).await;
        })
        .await;
        assert_eq!(log.matches(NOBODY).count(), 1, "{log}");
        assert!(log.contains(r#"endpoint="test""#), "{log}");
    }
}

#[tokio::test]
async fn r17_no_warning_if_a_process_runs_what_is_kept() {
    let app = TestApp::github_with(keep, Failing::times(1).handler()).await;
    let recovery = recover(&app);
    let log = logged(async {
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
        let_pass(PATIENCE).await;
        // The check takes much less.
        tokio::time::sleep(Duration::from_millis(500)).await;
    })
    .await;
    assert!(!log.contains(NOBODY), "{log}");
}

#[tokio::test]
async fn r10_the_begin_and_the_end_of_probing_are_logged() {
    let app = TestApp::github_with(keep, Failing::times(5).handler()).await;
    for id in ["a", "b"] {
        assert_eq!(app.send(github(id, "{}")).await.outcome, "kept");
    }
    let log = logged(async {
        let recovery = Recovery::new(app.database.pool.clone(), app.router.clone())
            .breaker(2, SOON)
            .poll_interval(SOON)
            .spawn();
        app.database.until(NOTHING_KEPT).await;
        until_logged("probes this endpoint no longer").await;
        recovery.stop().await;
    })
    .await;
    let begin = log.find("too many deliveries have failed in a row");
    let end = log.find("probes this endpoint no longer");
    assert!(begin.is_some() && begin < end, "{log}");
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn r17_a_request_and_its_run_in_the_background_have_an_outcome_each() {
    let app =
        TestApp::github_with(|layer| keep(layer).accept_first(), async |_: DedupeTx| {}).await;
    let caller =
        TraceLayer::new_for_http().make_span_with(|_: &Request<_>| tracing::error_span!("caller"));
    let router = app.router.clone().layer(caller);
    let log = logged(async {
        let response = send(&router, github("a", "{}")).await;
        assert_eq!(response, answer(200, "accepted", ""));
        app.database.until(NOTHING_KEPT).await;
    })
    .await;
    let line = |event: &str| log.lines().find(|line| line.contains(event)).unwrap();
    let (accepted, processed) = (line("webhook accepted"), line("webhook processed"));
    for (line, outcome) in [(accepted, "accepted"), (processed, "processed")] {
        assert_eq!(line.matches("outcome=").count(), 1, "{line}");
        assert!(line.contains(&format!("outcome=\"{outcome}\"")), "{line}");
        assert!(line.contains("caller:webhook{endpoint=\"test\""), "{line}");
        assert!(line.contains("delivery_id=\"a\""), "{line}");
    }
}

#[tokio::test]
async fn r5_a_failure_of_what_was_committed_counts_as_one_request() {
    let handler = async |mut tx: DedupeTx| {
        // The handler must not do this: its writes and the claim are committed.
        tx.execute(sqlx::raw_sql("commit")).await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let app = TestApp::github_with(keep, handler).await;
    let log = logged(async {
        let answered = app.send(github("a", "{}")).await;
        assert_eq!(answered, answer(200, "duplicate", ""));
    })
    .await;
    assert!(log.contains("WARN") || log.contains("ERROR"), "{log}");
    app.database
        .until("exists (select from idempotent_webhook.activity)")
        .await;
    let counted: Vec<(String, i64)> =
        sqlx::query_as("select outcome, count from idempotent_webhook.activity")
            .fetch_all(&app.database.pool)
            .await
            .unwrap();
    assert_eq!(counted, [("duplicate".to_owned(), 1)]);
}

#[tokio::test]
async fn r3_why_a_failed_delivery_is_not_kept_is_logged() {
    let set = |layer: IdempotentWebhook| keep(layer).keep_body_limit(10);
    let app = TestApp::github_with(set, Failing::times(9).handler()).await;
    let log = logged(async {
        assert_eq!(app.send(github("a", "0123456789a")).await.outcome, "failed");
    })
    .await;
    assert!(
        log.contains("its body is larger than `keep_body_limit`"),
        "{log}"
    );
}

#[tokio::test]
async fn r13_an_operation_without_an_effect_is_logged_as_such() {
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    let operate = async || {
        let (mut retried, mut discarded) = (None, None);
        let log = logged(async {
            retried = endpoint(&app).retry("a").await.ok();
            discarded = endpoint(&app).discard("a").await.ok();
        })
        .await;
        (retried, discarded, log)
    };
    let (retried, discarded, log) = operate().await;
    assert_eq!(
        (retried, discarded),
        (Some(Retried::Unchanged), Some(false))
    );
    assert!(log.contains("webhook delivery not retried"), "{log}");
    assert!(log.contains("webhook delivery not discarded"), "{log}");

    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let (retried, discarded, log) = operate().await;
    assert_eq!((retried, discarded), (Some(Retried::Due), Some(true)));
    assert!(log.contains("webhook delivery retried"), "{log}");
    assert!(log.contains("webhook delivery discarded"), "{log}");
}

#[tokio::test]
async fn r17_recovery_says_that_the_migration_is_missing() {
    let database = Database::empty().await;
    let provider = presets::github(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider).accept_first();
    let accepting: Router = Router::new().route("/", post(write_effect).layer(layer));
    let router = accepting.clone();
    let log = logged(async {
        let recovery = Recovery::new(database.pool.clone(), router).spawn();
        until_logged("could not look for due deliveries").await;
        recovery.stop().await;
        assert_eq!(send(&accepting, github("a", "{}")).await.status, 503);
    })
    .await;
    let hint = "has `idempotent_webhook::migrate` been run?";
    for step in ["could not look for due", "could not accept the delivery"] {
        let has_both = |line: &str| line.contains(step) && line.contains(hint);
        assert!(log.lines().any(has_both), "{step}: {log}");
    }
}

#[tokio::test]
async fn g13_an_attempt_without_a_route_is_logged_with_its_status_and_without_its_uri() {
    let app = TestApp::github_with(keep, Failing::times(1).handler()).await;
    let with_a_token = github_delivery().id("a").uri("/?token=s3cret").request();
    let log = logged(async {
        assert_eq!(app.send(with_a_token).await.outcome, "kept");
        let elsewhere = Router::new().route("/another", post(write_effect));
        let recovery = Recovery::new(app.database.pool.clone(), elsewhere).spawn();
        until_logged("no layer of this endpoint was reached").await;
        recovery.stop().await;
    })
    .await;
    assert!(log.contains("status=404"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
}
