//! The record of failures, which survives the rollback of the attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Recovery, presets, prune};
use sqlx::Executor;

use crate::support::{
    TestApp, answer, assert_rows, github, github_delivery, insert_effect, keep, logged, record,
    secret, send, send_copies, write_effect,
};

/// What the operator's query returns for a delivery.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct OnRecord {
    delivery_id: String,
    attempts: i32,
    status: i16,
    reason: String,
}

async fn failing(app: &TestApp) -> Vec<OnRecord> {
    sqlx::query_as(
        "select delivery_id, attempts, status, reason
         from idempotent_webhook.failing_deliveries
         where endpoint = 'test' and event_type = 'push'
             and first_failed_at <= last_failed_at
             and first_failed_at > now() - interval '1 minute'
         order by delivery_id",
    )
    .fetch_all(&app.database.pool)
    .await
    .unwrap()
}

/// The first two attempts fail as the delivery id says, and the third succeeds.
async fn recording(set: impl FnOnce(IdempotentWebhook, &Recovery) -> IdempotentWebhook) -> TestApp {
    let attempts = Arc::new(AtomicU32::new(0));
    let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await.unwrap();
        if attempts.fetch_add(1, Ordering::Relaxed) >= 2 {
            return StatusCode::OK;
        }
        match delivery.id().as_str() {
            "panic" => panic!("on purpose\0: {}", "x".repeat(5000)),
            "swallow" => {
                let _ = tx.execute("select no_such_column").await;
                StatusCode::OK
            }
            "slow" => std::future::pending().await,
            _ => StatusCode::IM_A_TEAPOT,
        }
    };
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        set(layer.handler_timeout(Duration::from_millis(200)), recovery)
    };
    TestApp::recovered(presets::github(secret()), set, handler).await
}

#[tokio::test]
async fn a_failing_delivery_is_on_record_until_it_succeeds() {
    for (id, status, reason) in [
        ("teapot", 418, "the handler answered 418 I'm a teapot"),
        ("panic", 500, "the handler panicked: on purpose: xxx"),
        ("swallow", 500, "the handler answered success although"),
        ("slow", 503, "the handler took longer than 200ms"),
    ] {
        let app = recording(|layer, recovery| layer.keep(record(keep(recovery)))).await;
        for attempt in 1..=2 {
            let answer = app.send(github(id, r#"{"card":"4242"}"#)).await;
            assert_eq!(answer.outcome, "failed", "{id}");
            let on_record = failing(&app).await;
            let [failed] = &on_record[..] else {
                panic!("{id}: {on_record:?}");
            };
            assert_eq!(failed.delivery_id, id);
            assert_eq!((failed.attempts, failed.status), (attempt, status));
            let said = &failed.reason;
            assert!(said.starts_with(reason), "{said}");
            assert!(said.len() <= 1000 && !said.contains("4242"), "{said}");
            assert_rows!(app.database, claims: 0, effects: 0);
        }
        let answer = app.send(github(id, r#"{"card":"4242"}"#)).await;
        assert_eq!(answer.outcome, "processed", "{id}");
        assert_eq!(failing(&app).await, []);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// With a limit of zero, a failure is recorded without its request, even if the body is empty. The
/// limit is no mistake, so there is no warning.
#[tokio::test]
async fn with_a_body_limit_of_zero_no_request_is_kept() {
    for (limit, warns) in [(0, false), (1, true)] {
        let fails = async |_: DedupeTx| StatusCode::IM_A_TEAPOT;
        let app = TestApp::keeping(|keep| keep.body_limit(limit), fails).await;
        let log = logged(async {
            assert_eq!(app.send(github("a", "{}")).await.outcome, "failed");
        })
        .await;
        assert_eq!(
            log.contains("webhook not kept, only recorded"),
            warns,
            "{log}"
        );
        let without_body = app.send(github("b", "")).await.outcome;
        assert_eq!(without_body, if limit == 0 { "failed" } else { "kept" });
        let states = format!(
            "(select string_agg(delivery_id || ' ' || state, ', ' order by delivery_id)
              from idempotent_webhook.kept_deliveries) = 'a recorded, b {}'",
            if limit == 0 { "recorded" } else { "due" }
        );
        app.database.until(&states).await;
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test]
async fn nothing_is_on_record_that_is_not_asked_for_or_was_no_attempt() {
    let app = recording(|layer, _| layer).await;
    assert_eq!(app.send(github("teapot", "{}")).await.outcome, "failed");
    assert_eq!(failing(&app).await, []);

    let app = recording(|layer, recovery| layer.keep(record(keep(recovery)))).await;
    let forged = github_delivery().id("teapot").tampered();
    assert_eq!(app.send(forged.request()).await.status, 401);
    assert_eq!(failing(&app).await, []);
}

#[tokio::test]
async fn a_record_that_cannot_be_written_changes_nothing() {
    let app = recording(|layer, recovery| layer.keep(record(keep(recovery)))).await;
    app.database
        .run("drop view idempotent_webhook.failing_deliveries")
        .await;
    app.database
        .run("alter table idempotent_webhook.kept_deliveries drop column reason cascade")
        .await;
    for _ in 0..2 {
        assert_eq!(app.send(github("teapot", "{}")).await.status, 418);
    }
    assert_eq!(
        app.send(github("teapot", "{}")).await,
        answer(200, "processed", "")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// One process fails and the other succeeds, in any order and at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_succeeded_in_another_process_is_not_failing() {
    let app = TestApp::keeping(record, write_effect).await;
    let (failing_elsewhere, _) = app
        .elsewhere_keeping(record, async || StatusCode::INTERNAL_SERVER_ERROR)
        .await;
    let routers = [failing_elsewhere, app.router.clone()];
    for round in 0..30 {
        let request = || github(&round.to_string(), "{}");
        send_copies(&routers, 4, request).await;
        // In any case, the provider sends the delivery again until it succeeds.
        let again = send(&app.router, request()).await;
        assert_eq!(again.status, 200);
    }
    assert_rows!(app.database, claims: 30, effects: 30);
    assert_eq!(failing(&app).await, []);
}

#[tokio::test]
async fn records_are_pruned() {
    let app = recording(|layer, recovery| layer.keep(record(keep(recovery)))).await;
    for id in ["old", "new"] {
        assert_eq!(app.send(github(id, "{}")).await.outcome, "failed");
    }
    let database = &app.database;
    database
        .run(
            "update idempotent_webhook.kept_deliveries set last_failed_at = now() - interval '5 days'
             where delivery_id = 'old'",
        )
        .await;
    let age = Duration::from_secs(4 * 24 * 60 * 60);
    let pruned = prune(&database.pool, age).await.unwrap();
    assert_eq!(pruned.failures, 1);
    let on_record = failing(&app).await;
    assert_eq!(on_record.len(), 1);
    assert_eq!(on_record[0].delivery_id, "new");
}

/// A delivery that has succeeded stays processed, even if the record of its earlier failure cannot
/// be removed.
#[tokio::test]
async fn a_success_does_not_depend_on_the_record_of_failures() {
    type Set = &'static str;
    async fn attempt(mut tx: DedupeTx, delivery: Delivery, set: Set) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        if delivery.event_type() == Some("fails") {
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
        tx.execute(set).await.unwrap();
        StatusCode::OK
    }
    for set in [
        "set local role nothing",
        "set local transaction_read_only = on",
    ] {
        let handler =
            async move |tx: DedupeTx, delivery: Delivery| attempt(tx, delivery, set).await;
        let app = TestApp::keeping(record, handler).await;
        app.database
            .run("drop role if exists nothing; create role nothing")
            .await;
        let send = async |event_type: &str| {
            let sent = github_delivery().id("a").event_type(event_type);
            app.send(sent.request()).await
        };
        assert_eq!(send("fails").await.status, 500);
        assert_eq!(send("push").await, answer(200, "processed", ""), "{set}");
        assert_eq!(send("push").await, answer(200, "duplicate", ""), "{set}");
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}
