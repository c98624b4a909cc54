//! Guarantee R17: what the log shows an operator about recovery.

use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Recovery, presets};
use sqlx::Executor;
use tower_http::trace::TraceLayer;

use crate::support::{
    Database, Failing, NOTHING_KEPT, TestApp, answer, assert_kept, assert_rows, github,
    insert_due_of, keep, keep_accepted, keeping_by, let_pass, logged, recover, recovery, secret,
    send, until_logged, write_effect,
};

/// Longer than a process waits for another process to report itself.
const PATIENCE: Duration = Duration::from_secs(11);

const NOT_SPAWNED: &str = "this process does not run them again";

const NOBODY: &str = "no process runs them again";

#[tokio::test]
async fn r17_that_the_process_does_not_run_what_it_keeps_is_a_warning() {
    for way in [keep, keep_accepted] {
        let app = keeping_by(way, Failing::times(9).handler()).await;
        let log = logged(async {
            for id in ["a", "b"] {
                app.send(github(id, "{}")).await;
            }
            let_pass(PATIENCE).await;
            until_logged(NOT_SPAWNED).await;
        })
        .await;
        assert_eq!(log.matches(NOT_SPAWNED).count(), 1, "{log}");
        assert!(log.contains(r#"endpoint="test""#), "{log}");
    }
}

#[tokio::test]
async fn r17_of_a_process_that_leaves_it_to_others_it_is_one_if_there_are_none() {
    let app = TestApp::keeping(|keep| keep, Failing::times(1).handler()).await;
    for is_recovered in [false, true] {
        let pool = app.database.another_pool(5).await;
        let recovered_by_others = Recovery::elsewhere(pool);
        let set = |layer: IdempotentWebhook| layer.keep(Keep::failed(&recovered_by_others));
        let elsewhere = app.elsewhere_with(set, Failing::times(9).handler()).await;
        let recovery = is_recovered.then(|| recover(&app));
        let log = logged(async {
            if is_recovered {
                app.database
                    .until("exists (select from idempotent_webhook.kept_endpoints where served_at is not null)")
                    .await;
            }
            let kept = send(&elsewhere, github("a", "{}")).await;
            assert_eq!(kept.outcome, "kept");
            let_pass(PATIENCE).await;
            if is_recovered {
                // The check for other processes takes much less time than this.
                tokio::time::sleep(Duration::from_millis(500)).await;
            } else {
                until_logged(NOBODY).await;
            }
        })
        .await;
        assert_eq!(log.contains(NOBODY), !is_recovered, "{log}");
        assert!(!log.contains(NOT_SPAWNED), "{log}");
        if let Some(recovery) = recovery {
            recovery.stop().await;
        }
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The endpoint's layer no longer keeps deliveries, or the endpoint was renamed.
#[tokio::test]
async fn r11_deliveries_of_an_endpoint_that_nobody_serves_are_left_alone_with_a_warning() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    insert_due_of(&app.database, "renamed", "/", 1).await;
    let log = logged(async {
        let recovery = recover(&app);
        app.database
            .until("exists (select from idempotent_webhook.kept_endpoints)")
            .await;
        app.settled().await;
        let_pass(PATIENCE).await;
        until_logged("webhook deliveries are due, but no process runs them").await;
        recovery.stop().await;
    })
    .await;
    assert!(
        log.contains(r#"endpoint="renamed" problem="unserved""#),
        "{log}"
    );
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r17_a_request_and_its_run_in_the_background_have_an_outcome_each() {
    let app = keeping_by(keep_accepted, async |_: DedupeTx| {}).await;
    let caller =
        TraceLayer::new_for_http().make_span_with(|_: &Request<_>| tracing::error_span!("caller"));
    let router = app.router.clone().layer(caller);
    let log = logged(async {
        let response = send(&router, github("a", "{}")).await;
        assert_eq!(response, answer(200, "accepted", ""));
        until_logged("webhook processed").await;
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
    assert_rows!(app.database, claims: 1, effects: 0);
}

#[tokio::test]
async fn r5_a_failure_of_what_was_committed_counts_as_one_request() {
    let handler = async |mut tx: DedupeTx| {
        // A handler must not do this, because it commits its writes and the claim.
        tx.execute(sqlx::raw_sql("commit")).await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    let log = logged(async {
        let answered = app.send(github("a", "{}")).await;
        assert_eq!(answered, answer(200, "duplicate", ""));
    })
    .await;
    assert!(log.contains("WARN") || log.contains("ERROR"), "{log}");
    app.database
        .until("exists (select from idempotent_webhook.activity where source <> 'handler')")
        .await;
    let counted: Vec<(String, i64)> = sqlx::query_as(
        "select outcome, count from idempotent_webhook.activity where source <> 'handler'",
    )
    .fetch_all(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(counted, [("duplicate".to_owned(), 1)]);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 0);
}

#[tokio::test]
async fn r17_recovery_says_that_the_migration_is_missing() {
    let database = Database::empty().await;
    let recovery = recovery(&database.pool);
    let provider = presets::github(secret());
    let layer =
        IdempotentWebhook::new(database.pool.clone(), "test", provider).keep(Keep::all(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let log = logged(async {
        let recovery = recovery.spawn(router.clone());
        until_logged("could not look for due deliveries").await;
        recovery.stop().await;
        assert_eq!(send(&router, github("a", "{}")).await.status, 503);
    })
    .await;
    let hint = "has `idempotent_webhook::migrate` been run?";
    for step in ["could not look for due", "could not accept the delivery"] {
        let has_both = |line: &str| line.contains(step) && line.contains(hint);
        assert!(log.lines().any(has_both), "{step}: {log}");
    }
}

/// A panic gives no answer, and the attempt is not counted.
#[tokio::test]
async fn r17_a_panic_before_the_layer_is_logged() {
    let database = Database::new().await;
    database.insert_due(1).await;
    let recovery = recovery(&database.pool).prepare_request(|_| panic!("on purpose"));
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .keep(keep(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let log = logged(async {
        let recovery = recovery.spawn(router);
        until_logged("no layer of this endpoint was reached").await;
        recovery.stop().await;
    })
    .await;
    let panicked = log.lines().find(|line| line.contains("panicked"));
    let panicked = panicked.unwrap();
    assert!(
        panicked.contains("ERROR") && panicked.contains("on purpose"),
        "{log}"
    );
    assert_kept!(database, "due", attempts: 1, retries: 0);
    assert_rows!(database, claims: 0, effects: 0);
}
