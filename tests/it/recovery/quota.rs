//! Guarantee R3: no more is kept than the quota allows. How a delivery over the quota is answered depends on the way to
//! keep (`Keep::failed`, `Keep::all` or `Keep::accepted`).

use std::time::Duration;

use axum::Router;
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::{IdempotentWebhook, Keep, Recovery, presets};
use sqlx::{AssertSqlSafe, Executor};

use crate::support::{
    Database, Failing, NONE_TAKEN, NOTHING_KEPT, ONE_DEAD, ONE_WAITS_FOR_A_LOCK, TestApp, answer,
    assert_kept, assert_rows, endpoint, github, keep, keep_accepted, keeping_by, let_pass, logged,
    recover, secret, send, soon, spawn_send, until_all_wait, until_logged, write_effect,
};

/// While a quota is full, kept deliveries are counted again after a pause. This time is longer than the pause.
const UNTIL_COUNTED_AGAIN: Duration = Duration::from_secs(2);

/// This time is longer than the pause between two counts while there is room.
const BETWEEN_COUNTS: Duration = Duration::from_secs(6);

type Way = fn(&Recovery) -> Keep;

const FAILED: Way = |recovery| keep(recovery);
const ALL: Way = |recovery| Keep::all(recovery).retry_delays([]);
const ACCEPTED: Way = |recovery| Keep::accepted(recovery).retry_delays([]);

/// Sends the first delivery, which fails, is kept, and exhausts the quota.
async fn full(way: Way, quota: (u32, u64), failing: &Failing) -> TestApp {
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        layer.keep(way(recovery).quota(quota.0, quota.1))
    };
    let app = TestApp::recovered(presets::github(secret()), set, failing.handler()).await;
    logged(async {
        let kept = app.send(github("a", "{}")).await;
        assert!(["kept", "accepted"].contains(&&*kept.outcome), "{kept:?}");
        until_logged("webhook quota exhausted").await;
        app.database.until(NONE_TAKEN).await;
    })
    .await;
    app
}

#[tokio::test]
async fn r3_what_is_over_the_quota_is_not_kept() {
    for quota in [(1, 1_000_000), (1_000, 2)] {
        let failing = Failing::times(2);
        let app = full(FAILED, quota, &failing).await;
        assert_eq!(app.send(github("b", "{}")).await, answer(500, "failed", ""));

        let failing = Failing::times(2);
        let all = full(ALL, quota, &failing).await;
        // The delivery is handled without being kept.
        assert_eq!(all.send(github("b", "{}")).await, answer(500, "failed", ""));
        let succeeds = answer(200, "processed", "");
        assert_eq!(all.send(github("b", "{}")).await, succeeds);
        assert_rows!(all.database, claims: 1, effects: 1);

        let failing = Failing::times(1);
        let accepting = full(ACCEPTED, quota, &failing).await;
        let refused = accepting.send(github("b", "{}")).await;
        assert_eq!((refused.status, &*refused.outcome), (503, "failed"));
        assert_eq!(failing.attempts(), [1]);

        for app in [app, all, accepting] {
            let listed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
            assert_eq!(listed.len(), 1);
            assert_eq!(listed[0].delivery_id, "a");
        }
    }
}

/// Kept deliveries are counted from time to time.
#[tokio::test]
async fn r3_a_quota_that_is_exhausted_later_is_kept_to() {
    let set = |keep: Keep| keep.quota(2, 1_000_000);
    let app = TestApp::keeping(set, Failing::times(9).handler()).await;
    logged(async {
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        app.settled().await;
        until_all_wait().await;
        let_pass(BETWEEN_COUNTS).await;
        assert_eq!(app.send(github("b", "{}")).await.outcome, "kept");
        until_logged("webhook quota exhausted").await;
    })
    .await;
    assert_eq!(app.send(github("c", "{}")).await, answer(500, "failed", ""));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// If a delivery is kept already, it needs no new row, and is handled as usual.
#[tokio::test]
async fn r3_a_full_quota_refuses_nothing_that_is_known() {
    let quota = (1, 1_000_000);
    let acknowledged: Way = |recovery| keep(recovery).acknowledge();
    let app = full(acknowledged, quota, &Failing::times(9)).await;
    let unknown = app.send(github("b", "{}")).await;
    assert_eq!(unknown, answer(500, "failed", ""));
    let known = app.send(github("a", "{}")).await;
    assert_eq!(known, answer(200, "kept", ""));
    assert_kept!(app.database, "due", attempts: 2, retries: 0);

    let app = full(ACCEPTED, quota, &Failing::times(1)).await;
    let processing: Router = app.elsewhere(write_effect).await;
    let sent = send(&processing, github("c", "{}")).await;
    assert_eq!(sent.outcome, "processed");
    let processed = app.send(github("c", "{}")).await;
    assert_eq!(processed, answer(200, "duplicate", ""));
    app.database.until(ONE_DEAD).await;
    let dead = app.send(github("a", "{}")).await;
    assert_eq!(dead, answer(200, "accepted", ""));
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// If the count read a large archive, each count would time out. A quota would then never become full, or stay full
/// forever.
#[tokio::test]
async fn r3_a_count_does_not_read_the_archive() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, archived_until)
             select 'test', n::text, 'processed', 1, now() from generate_series(1, 20000) as n;
             analyze idempotent_webhook.kept_deliveries",
        )
        .await;
    let count = include_str!("../../../src/recovery/kept/is_full.sql");
    let mut connection = database.pool.acquire().await.unwrap();
    connection
        .execute(AssertSqlSafe(format!(
            "prepare is_full (text, bigint, bigint) as {count}"
        )))
        .await
        .unwrap();
    let plan: Vec<String> =
        sqlx::query_scalar("explain execute is_full ('test', 100000, 1000000000)")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
    let plan = plan.join("\n");
    assert_eq!(plan.matches("Index Scan using").count(), 2, "{plan}");
    assert!(!plan.contains("kept_deliveries_pkey"), "{plan}");
}

/// Many requests need the count while the database does not answer. They share one count, so they do not wait one after
/// the other.
#[tokio::test]
async fn r3_a_count_that_fails_keeps_the_others_waiting_once() {
    let app = full(ACCEPTED, (1, 1_000_000), &Failing::times(99)).await;
    let_pass(UNTIL_COUNTED_AGAIN).await;
    let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.kept_deliveries")
        .execute(&mut *locked)
        .await
        .unwrap();
    let sent: Vec<_> = (0..40)
        .map(|id| spawn_send(&app.router, github(&id.to_string(), "{}")))
        .collect();
    let refused = async {
        for sent in sent {
            assert_eq!(sent.await.unwrap().status, 503);
        }
    };
    // One count takes 1.5 seconds.
    tokio::time::timeout(Duration::from_secs(20), refused)
        .await
        .expect("the requests do not wait for each other");
    drop(locked);
    assert_eq!(app.send(github("b", "{}")).await.status, 503);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r3_room_after_a_full_quota_is_found_by_all_of_a_burst_with_one_count() {
    let app = full(ACCEPTED, (1, 1_000_000), &Failing::times(99)).await;
    let endpoint = endpoint(&app);
    assert_eq!(app.send(github("b", "{}")).await.status, 503);
    endpoint.pause().await.unwrap();
    assert_eq!(
        endpoint.discard_all(&Filter::new()).await.unwrap().changed,
        1
    );
    let_pass(UNTIL_COUNTED_AGAIN).await;
    let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.kept_deliveries")
        .execute(&mut *locked)
        .await
        .unwrap();
    let sent: Vec<_> = (0..5)
        .map(|id| spawn_send(&app.router, github(&id.to_string(), "{}")))
        .collect();
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    until_all_wait().await;
    let counting: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(counting, 1);
    drop(locked);
    for sent in sent {
        assert_eq!(soon(sent).await.unwrap(), answer(200, "accepted", ""));
    }
    assert_eq!(
        endpoint.kept(&Filter::new(), None, 9).await.unwrap().len(),
        5
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r3_what_is_processed_and_stays_needs_no_room() {
    let archived: Way = |recovery| {
        let hour = Duration::from_secs(60 * 60);
        Keep::all(recovery).processed_for(hour)
    };
    let app = full(archived, (1, 1_000_000), &Failing::times(1)).await;
    app.database.make_due().await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(attempts.len(), 1);
    let_pass(UNTIL_COUNTED_AGAIN).await;
    assert_eq!(app.send(github("b", "{}")).await.outcome, "processed");
    let archived = "2 = (
        select count(*) from idempotent_webhook.kept_deliveries where state = 'processed'
    )";
    app.database.until(archived).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn r3_what_was_erased_before_it_had_failed_needs_no_room() {
    let app = keeping_by(
        |recovery| keep_accepted(recovery).quota(1, 1_000_000),
        write_effect,
    )
    .await;
    let endpoint = endpoint(&app);
    endpoint.pause().await.unwrap();
    logged(async {
        let accepted = app.send(github("a", "{}")).await;
        assert_eq!(accepted, answer(200, "accepted", ""));
        until_logged("webhook quota exhausted").await;
    })
    .await;
    assert_eq!(app.send(github("b", "{}")).await.status, 503);
    assert!(endpoint.erase("a").await.unwrap());
    let_pass(UNTIL_COUNTED_AGAIN).await;
    let accepted = app.send(github("b", "{}")).await;
    assert_eq!(accepted, answer(200, "accepted", ""));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The delivery's first body was over the limit.
#[tokio::test]
async fn r3_what_was_recorded_and_is_accepted_later_counts_for_the_quota() {
    let app = keeping_by(keep_accepted, write_effect).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts)
             values ('test', 'a', 'recorded', 1)",
        )
        .await;
    endpoint(&app).pause().await.unwrap();
    assert_eq!(app.send(github("a", "12345")).await.outcome, "accepted");
    let bytes: (Option<i32>, i32) = sqlx::query_as(
        "select body_bytes, octet_length(body) from idempotent_webhook.kept_deliveries
         join idempotent_webhook.kept_requests using (endpoint, tenant, delivery_id)",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(bytes, (Some(5), 5));
    assert_rows!(app.database, claims: 0, effects: 0);
}
