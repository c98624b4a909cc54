//! Requests of processed deliveries are archived for a time, and operators can run them again.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Filter, KeptDelivery, KeptState, Reprocessed};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, Outcome, Recovery,
    presets, prune,
};

use sqlx::Executor;

use super::telling::NO_OTHERS;
use crate::support::{
    Database, Failing, NOTHING_KEPT, TestApp, answer, assert_kept, assert_rows, endpoint, github,
    insert_effect, keep, keep_all, keeping_by, recover, secret, send, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const PROCESSED: &str =
    "(select bool_and(state = 'processed') from idempotent_webhook.kept_deliveries)";

async fn archived() -> TestApp {
    TestApp::keeping_all(|keep| keep.processed_for(DAY), write_effect).await
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_a_processed_delivery_is_run_again_on_purpose() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = seen.clone();
        async move |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await.unwrap();
            let key = delivery.idempotency_key("refund");
            let run = (delivery.is_reprocessed(), delivery.attempt(), key);
            seen.lock().unwrap().push(run);
            StatusCode::OK
        }
    };
    let app = TestApp::keeping_all(|keep| keep.processed_for(DAY), handler).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "")
    );
    assert_eq!(app.database.kept().await.state, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
    let duplicate = app.send(github("a", "{}")).await;
    assert_eq!(duplicate, answer(200, "duplicate", ""));

    assert_eq!(
        endpoint(&app).reprocess("a").await.unwrap(),
        Reprocessed::Due
    );
    assert_rows!(app.database, claims: 0, effects: 1);
    assert_eq!(
        endpoint(&app).reprocess("a").await.unwrap(),
        Reprocessed::NotProcessed
    );
    let results = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].outcome, Some(Outcome::Processed));
    assert_rows!(app.database, claims: 1, effects: 2);
    assert_eq!(app.database.kept().await.state, "processed");

    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].0, seen[0].1), (false, 1));
    assert_eq!((seen[1].0, seen[1].1), (true, 2));
    assert_eq!(seen[0].2, seen[1].2);
}

/// A handler enqueues a job with an idempotency key. When the delivery is reprocessed, the key is
/// the same as before, as the guide says.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_unique_idempotency_key_needs_on_conflict_do_nothing() {
    const INSERT: &str = "insert into jobs (idempotency_key) values ($1)";
    const INSERT_ONCE: &str =
        "insert into jobs (idempotency_key) values ($1) on conflict do nothing";
    for (insert, outcome) in [(INSERT, Outcome::Kept), (INSERT_ONCE, Outcome::Processed)] {
        let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
            sqlx::query(insert)
                .bind(delivery.idempotency_key("ship"))
                .execute(&mut *tx)
                .await?;
            Ok::<_, HandlerError>(StatusCode::OK)
        };
        let app = TestApp::keeping_all(|keep| keep.processed_for(DAY), handler).await;
        app.database
            .run("create table jobs (idempotency_key text primary key)")
            .await;
        app.send(github("a", "{}")).await;
        assert_eq!(
            endpoint(&app).reprocess("a").await.unwrap(),
            Reprocessed::Due
        );
        let results = app.recovery.run_due(&app.router).await.unwrap();
        assert_eq!(results[0].outcome, Some(outcome), "{insert}");
        app.database.until("(select count(*) from jobs) = 1").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_what_one_version_processed_is_told_and_run_again() {
    let database = Database::new().await;
    let recovery = Recovery::new(database.pool.clone());
    let serve = |version: &'static str| {
        let layer =
            IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
                .version(version)
                .keep(Keep::all(&recovery).processed_for(DAY));
        Router::new().route("/", post(write_effect).layer(layer))
    };
    for (version, id) in [("1.1", "a"), ("1.2", "b")] {
        let answered = send(&serve(version), github(id, "{}")).await;
        assert_eq!(answered, answer(200, "processed", "done"));
    }
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    let by = |version: &str| Filter::new().processed_by(version);
    let versions = async || -> Vec<_> {
        let processed = Filter::new().state(KeptState::Processed);
        let listed = endpoint.kept(&processed, None, 10).await.unwrap();
        let version = |kept: KeptDelivery| kept.processed_version;
        listed.into_iter().map(version).collect()
    };
    assert_eq!(
        versions().await,
        ["1.1", "1.2"].map(|version| Some(version.to_owned()))
    );
    assert_eq!(endpoint.reprocess_all(&by("1.0")).await.unwrap().changed, 0);
    assert_eq!(endpoint.reprocess_all(&by("1.1")).await.unwrap().changed, 1);
    recovery.run_due(&serve("1.3")).await.unwrap();
    assert_eq!(
        versions().await,
        ["1.3", "1.2"].map(|version| Some(version.to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_a_filter_chooses_by_time_and_event_type_and_the_count_is_true() {
    let app = archived().await;
    for id in ["a", "b", "c"] {
        app.send(github(id, "{}")).await;
    }
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set processed_at = processed_at - interval '2 days'
             where delivery_id = 'a';
             update idempotent_webhook.kept_deliveries
             set event_type = 'other'
             where delivery_id = 'b'",
        )
        .await;
    let yesterday = SystemTime::now() - DAY;
    let endpoint = endpoint(&app);
    let none = Filter::new().event_type("third");
    assert_eq!(endpoint.reprocess_all(&none).await.unwrap().changed, 0);
    let early = Filter::new().processed(..yesterday);
    assert_eq!(endpoint.reprocess_all(&early).await.unwrap().changed, 1);
    assert_rows!(app.database, claims: 2, effects: 3);
    let other = Filter::new().processed(yesterday..).event_type("other");
    assert_eq!(endpoint.reprocess_all(&other).await.unwrap().changed, 1);
    assert_eq!(
        endpoint
            .reprocess_all(&Filter::new())
            .await
            .unwrap()
            .changed,
        1
    );
    assert_eq!(
        endpoint
            .reprocess_all(&Filter::new())
            .await
            .unwrap()
            .changed,
        0
    );
    assert_rows!(app.database, claims: 0, effects: 3);

    let recovery = recover(&app);
    app.database.until(PROCESSED).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 3, effects: 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_thousands_are_reprocessed_in_batches_beside_recovery_and_each_once() {
    let app = archived().await;
    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             select 'test', 'd' || n from generate_series(1, 1100) as n;
             insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, processed_at, archived_for, archived_until)
             select 'test', 'd' || n, 'processed', 1, now(), interval '1 day', now() + interval '1 day'
             from generate_series(1, 1100) as n;
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', 'd' || n, 1, 'POST', '/', '', '{}' from generate_series(1, 1100) as n",
        )
        .await;
    let recovery = recover(&app);
    let reprocessed = endpoint(&app)
        .reprocess_all(&Filter::new())
        .await
        .unwrap()
        .changed;
    assert_eq!(reprocessed, 1100);
    app.database
        .until(&format!(
            "{PROCESSED} and (select count(*) = 1100 from effects)"
        ))
        .await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1100, effects: 1100);
}

#[tokio::test(flavor = "multi_thread")]
async fn k3_what_failed_before_a_success_is_still_known() {
    let failing = Failing::times(1);
    let app = TestApp::keeping_all(|keep| keep.processed_for(DAY), failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
    let recovery = recover(&app);
    app.database.until(PROCESSED).await;
    recovery.stop().await;
    let filter = Filter::new().state(KeptState::Processed);
    let kept = endpoint(&app).kept(&filter, None, 10).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].reason.as_deref(), Some("not yet"));
    assert!(kept[0].processed_at.is_some());
    assert_eq!(kept[0].attempts, 2);
    let unprocessed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
    assert!(unprocessed.is_empty(), "{unprocessed:?}");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// An operator reprocesses the delivery, and the provider sends it again before recovery runs it.
#[tokio::test]
async fn k3_a_reprocessed_delivery_says_so_whoever_sends_it() {
    for way in [keep, keep_all] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let handler = {
            let seen = seen.clone();
            async move |mut tx: DedupeTx, delivery: Delivery| {
                insert_effect(&mut tx, &delivery).await.unwrap();
                let mut seen = seen.lock().unwrap();
                seen.push(delivery.is_reprocessed());
                // With `keep`, only deliveries that have failed are archived, so the first attempt
                // fails.
                match (delivery.attempt(), seen.len()) {
                    (1, 1) => StatusCode::BAD_GATEWAY,
                    _ => StatusCode::OK,
                }
            }
        };
        let way = |recovery: &Recovery| way(recovery).processed_for(DAY);
        let app = keeping_by(way, handler).await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        app.database.make_due().await;
        app.recovery.run_due(&app.router).await.unwrap();
        app.database.until(PROCESSED).await;

        assert_eq!(
            endpoint(&app).reprocess("a").await.unwrap(),
            Reprocessed::Due
        );
        assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
        app.database.until(PROCESSED).await;
        assert_eq!(*seen.lock().unwrap(), [false, false, true]);
        assert_rows!(app.database, claims: 1, effects: 2);
    }
}

/// The provider sends the delivery long after it was processed, and the delivery fails.
#[tokio::test(flavor = "multi_thread")]
async fn k3_an_archived_delivery_that_comes_again_has_a_new_schedule() {
    let failing = Failing::times(3);
    let app = TestApp::keeping(|keep| keep.processed_for(DAY), failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(PROCESSED).await;
    recovery.stop().await;
    assert_kept!(app.database, "processed", attempts: 4, retries: 3);

    app.database
        .run("delete from idempotent_webhook.deliveries")
        .await;
    failing.fail_again(3);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_kept!(app.database, "due", attempts: 5, retries: 0);
    let recovery = recover(&app);
    app.database.until(PROCESSED).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 2);
}

#[tokio::test]
async fn k3_retention_deletes_the_archive_by_its_own_age() {
    let app = archived().await;
    app.send(github("a", "{}")).await;
    app.send(github("b", "{}")).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set archived_until = now() - interval '1 second'
             where delivery_id = 'a'",
        )
        .await;
    prune(&app.database.pool, 30 * DAY).await.unwrap();
    assert_eq!(app.database.kept().await.state, "processed");
    assert_eq!(
        endpoint(&app).reprocess("a").await.unwrap(),
        Reprocessed::NotKept
    );
    // If `processed_for` is long enough, the archived request outlives the claim.
    app.database.age_claims("90 days").await;
    prune(&app.database.pool, 30 * DAY).await.unwrap();
    assert_rows!(app.database, claims: 0, effects: 2);
    assert_eq!(
        endpoint(&app).reprocess("b").await.unwrap(),
        Reprocessed::Due
    );
    app.recovery.run_due(&app.router).await.unwrap();
    assert_rows!(app.database, claims: 1, effects: 3);
}

/// Another process has committed the delivery, but its kept row was left behind. Recovery notices
/// this, and archives the row from then on.
#[tokio::test]
async fn k3_what_turns_out_to_be_processed_stays_from_then_on() {
    let app = archived().await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries set archived_for = '1 day';
             insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             values ('test', 'due-1', now() - interval '1 hour')",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(PROCESSED).await;
    recovery.stop().await;
    let stays = "select count(*)
        from idempotent_webhook.kept_deliveries
        where processed_at < now() - interval '59 minutes'
            and archived_until between now() + interval '23 hours' and now() + interval '1 day'";
    assert_eq!(app.database.count(stays).await, 1);
    assert_rows!(app.database, claims: 1, effects: 0);
}

/// If only a failure was recorded, there is no request to archive.
#[tokio::test]
async fn k3_what_was_only_recorded_is_not_archived() {
    let set = |keep: Keep| keep.body_limit(3).processed_for(30 * DAY);
    let app = TestApp::keeping(set, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "[1, 2]")).await.outcome, "failed");
    assert_kept!(app.database, "recorded", attempts: 1, retries: 0);
    assert_eq!(app.send(github("a", "[1, 2]")).await.outcome, "processed");
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(
        endpoint(&app).reprocess("a").await.unwrap(),
        Reprocessed::NotKept
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn k3_a_forgotten_delivery_leaves_no_request() {
    let app = archived().await;
    app.send(github("a", "{}")).await;
    assert!(endpoint(&app).forget("a").await.unwrap());
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 2);
}

/// A delivery that failed before it was processed is also found by the time of its failure.
#[tokio::test(flavor = "multi_thread")]
async fn k3_what_failed_first_is_reprocessed_by_the_time_of_its_failure() {
    let app = archived().await;
    for id in ["a", "b"] {
        assert_eq!(app.send(github(id, "{}")).await.status, 200);
    }
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries set last_failed_at = now()
             where delivery_id = 'a'",
        )
        .await;
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let filter = Filter::new().failed(hour_ago..);
    assert_eq!(
        endpoint(&app).reprocess_all(&filter).await.unwrap().changed,
        1
    );
    assert_eq!(
        endpoint(&app).reprocess_all(&filter).await.unwrap().changed,
        0
    );
}

/// An export reads the whole archive page by page, so a page must not read more than it lists.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_page_of_the_archive_reads_what_it_lists() {
    let database = Database::new().await;
    let filling = database.another_pool(1).await;
    for statement in [
        "insert into idempotent_webhook.kept_deliveries
            (endpoint, tenant, delivery_id, state, attempts, processed_at, archived_until)
         select
            'test', 'tenant-' || n % 2, lpad(n::text, 5, '0'), 'processed', 1, now(),
            now() + interval '1 day'
         from generate_series(1, 20000) as n",
        "vacuum analyze idempotent_webhook.kept_deliveries",
    ] {
        filling.execute(statement).await.unwrap();
    }
    // Postgres counts what a connection has read when the connection ends.
    filling.close().await;
    database.until(NO_OTHERS).await;
    let read = "select (
            heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit
        )::bigint
        from pg_statio_user_tables
        where relname = 'kept_deliveries'";
    let before = database.count(read).await;
    let pool = database.another_pool(1).await;
    let endpoint = Endpoint::new(pool.clone(), "test");
    let processed = Filter::new().state(KeptState::Processed);
    let first = endpoint.kept(&processed, None, 2).await.unwrap();
    let next = endpoint.kept(&processed, first.last(), 1).await.unwrap();
    pool.close().await;
    database.until(NO_OTHERS).await;
    let blocks = database.count(read).await - before;
    let key = |kept: &KeptDelivery| (kept.tenant.clone().unwrap(), kept.delivery_id.clone());
    let keys: Vec<_> = first.iter().chain(&next).map(key).collect();
    let expected = ["00002", "00004", "00006"].map(|id| ("tenant-0".to_owned(), id.to_owned()));
    assert_eq!(keys, expected);
    assert!(blocks < 100, "{blocks} blocks for two pages");
}
