//! Attempts at one delivery, by the provider and by recovery, in one process and in several. One of them commits, and
//! none prevents another from doing its work.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::Discarded;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Outcome, Recovery, presets,
};
use sqlx::Executor;

use crate::support::{
    Answered, Database, Failing, Gauge, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, Process, TestApp,
    answer, assert_kept, assert_rows, endpoint, failing_behind_gate, gated, github,
    github_delivery, held_back, insert_effect, keep, keep_accepted, keeping_by, logged, recover,
    recovery, secret, send, send_copies, spawn_send, write_effect,
};

#[tokio::test(flavor = "multi_thread")]
async fn r5_the_providers_retry_and_ours_at_the_same_instant_commit_once() {
    const ROUNDS: i64 = 150;
    let (seen, runs) = (
        Arc::new(Mutex::new(HashSet::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let handler = {
        let runs = runs.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            runs.fetch_add(1, Ordering::Relaxed);
            let is_first = seen.lock().unwrap().insert(delivery.id().to_string());
            Box::pin(async move {
                insert_effect(&mut tx, &delivery).await?;
                match is_first {
                    true => Err(HandlerError::new("not yet")),
                    false => Ok(StatusCode::OK),
                }
            })
        }
    };
    let database = Database::new().await;
    let (mut routers, mut recoveries) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let way = |recovery: &Recovery| keep(recovery).retry_delays([Duration::ZERO; 20]);
        let process = Process::new(database.another_pool(5).await, way, handler.clone());
        let recovery = process.recovery.poll_interval(Duration::from_millis(10));
        recoveries.push(recovery.spawn(process.router.clone()));
        routers.push(process.router);
    }
    for round in 0..ROUNDS {
        let id = format!("id-{round}");
        let first = send(&routers[0], github(&id, "{}")).await;
        assert_eq!(first, answer(500, "kept", ""));
        for retried in send_copies(&routers, 2, || github(&id, "{}")).await {
            let is_committed = ["processed", "duplicate"].contains(&&*retried.outcome);
            assert!(is_committed && retried.status == 200, "{retried:?}");
        }
    }
    database.until(NOTHING_KEPT).await;
    for recovery in recoveries {
        recovery.stop().await;
    }
    assert_eq!(
        runs.load(Ordering::Relaxed),
        2 * 150,
        "one fails, one commits"
    );
    assert_rows!(database, claims: ROUNDS, effects: ROUNDS);
}

#[tokio::test]
async fn r5_what_another_process_commits_before_it_is_kept_is_a_duplicate() {
    for acknowledge in [false, true] {
        let set = |keep: Keep| match acknowledge {
            true => keep.acknowledge(),
            false => keep,
        };
        let (mut failing, handler) = failing_behind_gate();
        let app = TestApp::keeping(set, handler).await;
        let (mut gate, handler) = gated();
        let elsewhere = app.elsewhere(handler).await;
        let sent = spawn_send(&app.router, github("a", "{}"));
        failing.reached().await;
        let committed = spawn_send(&elsewhere, github("a", "{}"));
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        // The failing attempt is rolled back. Before it can be kept, the other attempt claims the delivery.
        failing.open();
        gate.reached().await;
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        gate.open();
        assert_eq!(committed.await.unwrap(), answer(200, "processed", ""));
        assert_eq!(sent.await.unwrap(), answer(200, "duplicate", ""));
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// The sender sees the failure in time, even if the other process takes long.
#[tokio::test(flavor = "multi_thread")]
async fn r5_a_failure_is_kept_in_time_although_another_process_runs_the_delivery() {
    let (mut failing, handler) = failing_behind_gate();
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let layer = layer.keep(keep(recovery));
        layer.database_timeout(Duration::from_secs(2))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let (mut gate, handler) = gated();
    let elsewhere = app.elsewhere(handler).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    failing.reached().await;
    let committed = spawn_send(&elsewhere, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    failing.open();
    gate.reached().await;
    assert_eq!(sent.await.unwrap(), answer(502, "kept", ""));
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    gate.open();
    assert_eq!(committed.await.unwrap(), answer(200, "processed", ""));
    app.database.make_due().await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(attempts[0].outcome, Some(Outcome::Duplicate));
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The process whose delivery was taken over is not dead. It was frozen, or cut off from Postgres, and Postgres has
/// ended its transaction.
#[tokio::test(flavor = "multi_thread")]
async fn r6_an_attempt_that_was_taken_over_neither_commits_nor_counts() {
    let (mut gate, handler) = gated();
    let app = TestApp::keeping(|keep| keep, handler).await;
    app.database.insert_due(1).await;
    // With one slot, the frozen process takes no other delivery in the meantime.
    let frozen = app.recovery.clone().concurrency(1);
    let frozen = frozen.spawn(app.router.clone());
    gate.reached().await;
    app.database
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction'",
        )
        .await;
    app.database.lose_takers().await;
    let pool = app.database.another_pool(5).await;
    let another = Process::new(pool, keep, write_effect);
    let taken_over = another.recover();
    app.database.until(NOTHING_KEPT).await;
    taken_over.stop().await;
    gate.open();
    frozen.stop().await;
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_recovery_takes_at_most_half_of_the_pool_and_senders_are_answered() {
    let database = Database::new().await;
    database.insert_due(200).await;
    let recovering = Gauge::default();
    let handler = {
        let recovering = recovering.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let recovering = recovering.clone();
            Box::pin(async move {
                let work = async {
                    insert_effect(&mut tx, &delivery).await?;
                    // Leaves enough time for another delivery to be taken.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    Ok(StatusCode::OK)
                };
                match delivery.attempt() {
                    1 => work.await,
                    _ => recovering.during(work).await,
                }
            })
        }
    };
    let process = Process::new(database.another_pool(2).await, keep, handler);
    let recovery = process.recovery.concurrency(10);
    let recovery = recovery.spawn(process.router.clone());
    for live in 0..50 {
        let answered = send(&process.router, github(&format!("live-{live}"), "{}")).await;
        assert_eq!(answered, answer(200, "processed", ""));
    }
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!((recovering.most(), recovering.all()), (1, 200));
    assert_rows!(database, claims: 250, effects: 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_process_of_the_version_before_leaves_a_new_endpoint_alone() {
    let database = Database::new().await;
    let failing = Failing::times(1);
    let recovery = recovery(&database.pool);
    let layer = |endpoint: &str| {
        let github = presets::github(secret());
        IdempotentWebhook::new(database.pool.clone(), endpoint, github).keep(keep(&recovery))
    };
    let before = || Router::new().route("/", post(write_effect).layer(layer("test")));
    let after = || before().route("/b", post(failing.handler()).layer(layer("b")));
    let new: Router = after();
    let sent = github_delivery().uri("/b");
    assert_eq!(send(&new, sent.request()).await.outcome, "kept");
    drop(new);

    database.insert_due(3).await;
    let old = before();
    let running = recovery.clone().spawn(old);
    let only_b = "not exists (
        select from idempotent_webhook.kept_deliveries where endpoint <> 'b'
    )";
    database.until(only_b).await;
    running.stop().await;
    assert_kept!(database, "due", attempts: 1, retries: 0);

    let running = recovery.clone().spawn(after());
    database.until(NOTHING_KEPT).await;
    running.stop().await;
    assert_eq!(failing.attempts(), [1, 2]);
    assert_rows!(database, claims: 4, effects: 4);
}

/// `Handler::layer` creates the service for each request, and there has been no request since the restart.
#[tokio::test(flavor = "multi_thread")]
async fn r11_what_a_layer_on_a_handler_keeps_is_run() {
    let database = Database::new().await;
    let failing = Failing::times(1);
    let process = || {
        let recovery = recovery(&database.pool);
        let layer =
            IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
        let handler = failing.handler().layer(layer.keep(keep(&recovery)));
        (Router::new().route("/", post(handler)), recovery)
    };
    let (before, _) = process();
    assert_eq!(send(&before, github("a", "{}")).await.outcome, "kept");
    let (after, recovery) = process();
    let recovery = recovery.spawn::<Router, _>(after);
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(database, claims: 1, effects: 1);
}

/// If a stop cut the running attempt off, the delivery would lose this attempt.
#[tokio::test(flavor = "multi_thread")]
async fn r7_stopping_waits_for_the_attempt_that_runs() {
    let (mut gate, handler) = gated();
    let app = TestApp::keeping(|keep| keep, handler).await;
    app.database.insert_due(1).await;
    let recovery = recover(&app);
    gate.reached().await;
    let mut stopping = tokio::spawn(recovery.stop());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut stopping).await;
    assert!(early.is_err(), "stopping has not waited");
    gate.open();
    stopping.await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r13_what_is_discarded_before_its_attempt_begins_is_not_run() {
    let failing = Failing::times(1);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    app.send(github("a", "{}")).await;
    let log = logged(async {
        let (router, mut before_the_layer) = held_back(&app.router);
        let recovery = app.recovery.clone().spawn(router);
        before_the_layer.reached().await;
        assert_eq!(
            endpoint(&app).discard("a").await.unwrap(),
            Discarded::Discarded
        );
        before_the_layer.open();
        recovery.stop().await;
    })
    .await;
    assert_eq!(failing.attempts(), [1]);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 0);
    // The log does not call this a duplicate, because a request that waits for this attempt is not answered as a
    // duplicate.
    assert!(log.contains("was discarded, forgotten"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_what_is_forgotten_before_its_attempt_begins_does_not_run_by_itself() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'due-1')",
        )
        .await;
    let (router, mut before_the_layer) = held_back(&app.router);
    let recovery = app.recovery.clone().spawn(router);
    before_the_layer.reached().await;
    assert!(endpoint(&app).forget("due-1").await.unwrap());
    before_the_layer.open();
    recovery.stop().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// After the 2xx, the provider does not send the delivery again, so it must be kept.
#[tokio::test]
async fn r15_what_is_accepted_while_it_is_discarded_is_kept_anew() {
    let app = keeping_by(keep_accepted, write_effect).await;
    app.database.insert_due(1).await;
    let mut discarding = app.database.another_pool(1).await.begin().await.unwrap();
    discarding
        .execute("delete from idempotent_webhook.kept_deliveries")
        .await
        .unwrap();
    let sent = spawn_send(&app.router, github("due-1", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    discarding.commit().await.unwrap();
    assert_eq!(sent.await.unwrap(), answer(200, "accepted", ""));
    assert_kept!(app.database, "due", attempts: 0, retries: 0);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The handler's transaction holds the kept row, and the copy must not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_sent_again_while_its_handler_runs_is_accepted_without_a_wait_for_it() {
    let (mut gate, handler) = gated();
    let app = keeping_by(keep_accepted, handler).await;
    let accepted = answer(200, "accepted", "");
    assert_eq!(app.send(github("a", "{}")).await, accepted);
    gate.reached().await;
    assert_eq!(app.send(github("a", "{}")).await, accepted);
    gate.open();
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The commit of another process deletes the kept row. This process finds no row, and keeps the delivery again.
#[tokio::test]
async fn r15_what_is_accepted_while_it_is_processed_leaves_nothing_to_run() {
    let app = keeping_by(keep_accepted, write_effect).await;
    app.database.insert_due(1).await;
    let mut processing = app.database.another_pool(1).await.begin().await.unwrap();
    let process = "
        insert into idempotent_webhook.deliveries (endpoint, delivery_id) values ('test', 'due-1');
        delete from idempotent_webhook.kept_deliveries";
    processing.execute(sqlx::raw_sql(process)).await.unwrap();
    let sent = spawn_send(&app.router, github("due-1", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    processing.commit().await.unwrap();
    assert_eq!(sent.await.unwrap(), answer(200, "accepted", ""));
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 0);
}
