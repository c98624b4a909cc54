//! Guarantee G12: retention never deletes a delivery that its provider may still retry.

use std::time::Duration;

use idempotent_webhook::retention::PruneError;
use idempotent_webhook::{migrate, presets, prune};
use sqlx::AssertSqlSafe;

use crate::support::{
    Database, TestApp, another, assert_rows, github, let_pass, logged, now, secret, send, soon,
    stripe, stripe_event, write_effect,
};

const fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

#[tokio::test]
async fn old_deliveries_are_forgotten_in_batches_and_counted() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.deliveries
                 (endpoint, delivery_id, received_at)
             select 'test', n, now() - (n - 0.5) * interval '1 hour'
             from generate_series(1, 30000) n",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let pruned = prune(&database.pool, days(100)).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (30_000 - 2400, 0));
    assert_rows!(database, claims: 2400, effects: 0);
    for age in [days(100), Duration::MAX] {
        let pruned = prune(&database.pool, age).await.unwrap();
        assert_eq!(pruned.deliveries, 0);
    }
}

#[tokio::test]
async fn only_what_is_deleted_is_read() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             select 'test', n, now() - n * interval '1 minute' from generate_series(1, 300000) n;
             insert into idempotent_webhook.subjects (endpoint, subject, version, advanced_at)
             select 'test', n, n, now() - n * interval '1 minute' from generate_series(1, 300000) n;
             analyze idempotent_webhook.deliveries, idempotent_webhook.subjects",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let pool = database.another_pool(1).await;
    // Keeps everything but the oldest 10,000 of the 300,000 minutes.
    let age = Duration::from_secs(290_000 * 60 + 30);
    for deleted in [10_000, 0] {
        let pruned = prune(&pool, age).await.unwrap();
        assert_eq!((pruned.deliveries, pruned.subjects), (deleted, deleted));
    }
    // Postgres counts what a session has read when the session ends.
    pool.close().await;
    let read = "select coalesce(sum(idx_tup_fetch), 0)::int8 from pg_stat_user_tables";
    database.until(&format!("20000 <= ({read})")).await;
    let (by_index, in_order): (i64, i64) = sqlx::query_as(AssertSqlSafe(format!(
        "select ({read}), sum(seq_tup_read)::int8 from pg_stat_user_tables"
    )))
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert!(by_index < 200_000, "{by_index} rows were read");
    assert!(in_order < 100, "{in_order} rows were read in order");
}

#[tokio::test]
async fn subjects_that_nobody_has_advanced_for_long_are_forgotten() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.subjects (endpoint, subject, version, advanced_at)
             select 'test', n, n, now() - (n - 0.5) * interval '1 hour'
             from generate_series(1, 3000) n",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let pruned = prune(&database.pool, days(100)).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (0, 600));
    database
        .until("2400 = (select count(*) from idempotent_webhook.subjects)")
        .await;
}

#[tokio::test]
async fn g12_an_age_below_the_redelivery_window_is_refused() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    app.database.age_claims("2 days").await;
    let pool = &app.database.pool;
    let refused = prune(pool, days(1)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the provider of endpoint \"test\" may redeliver for 3 days, and deliveries must be \
         kept for at least as long"
    );
    let PruneError::TooShort {
        endpoint,
        redelivery_window,
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((endpoint.as_str(), redelivery_window), ("test", days(3)));
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(prune(pool, days(3)).await.unwrap().deliveries, 0);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "duplicate");
}

#[tokio::test]
async fn g12_the_longest_window_of_all_endpoints_counts() {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    let shorter = presets::stripe(secret()).redelivery_window(days(1));
    let elsewhere = app.elsewhere_of(shorter, write_effect).await;
    let event = |id| stripe(stripe_event(id), now());
    app.send(event("evt_1")).await;
    send(&elsewhere, event("evt_2")).await;
    let pool = &app.database.pool;
    assert!(prune(pool, days(29)).await.is_err());
    assert_eq!(prune(pool, days(30)).await.unwrap().deliveries, 0);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn g12_a_window_that_was_corrected_holds_for_a_day() {
    let app = TestApp::of(
        presets::github(secret()).redelivery_window(days(365)),
        write_effect,
    )
    .await;
    assert_eq!(app.send(github("a", "{}")).await.status, 200);
    let pool = &app.database.pool;
    let corrected = async || {
        app.elsewhere_of(presets::github(secret()), write_effect)
            .await
    };

    // The process with the long window may still be running.
    let (id, elsewhere) = ("b", corrected().await);
    assert_eq!(send(&elsewhere, github(id, "{}")).await.status, 200);
    assert!(prune(pool, days(30)).await.is_err());

    app.database
        .run(
            "update idempotent_webhook.redelivery_windows
             set registered_at = now() - interval '25 hours'
             where redelivery_window = interval '365 days'",
        )
        .await;
    let (id, elsewhere) = ("c", corrected().await);
    assert_eq!(send(&elsewhere, github(id, "{}")).await.status, 200);
    assert_eq!(prune(pool, days(30)).await.unwrap().deliveries, 0);
    assert!(prune(pool, days(2)).await.is_err());
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test]
async fn g12_of_an_endpoint_without_a_window_on_record_nothing_is_deleted() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.status, 200);
    // The schema is dropped and created again while the process runs.
    app.database
        .run("drop schema idempotent_webhook cascade")
        .await;
    let pool = &app.database.pool;
    migrate(pool).await.unwrap();
    assert_eq!(app.send(github("b", "{}")).await.status, 200);
    assert_eq!(prune(pool, Duration::ZERO).await.unwrap().deliveries, 0);
    assert_eq!(app.send(github("b", "{}")).await.outcome, "duplicate");
    assert_rows!(app.database, claims: 1, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_may_prune_at_once_under_any_isolation() {
    let database = Database::new().await;
    let name = &database.name;
    database
        .run(&format!(
            "alter database {name} set default_transaction_isolation = 'serializable';
             insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             select 'test', n, now() - interval '30 days' from generate_series(1, 20000) n"
        ))
        .await;
    database.has_window("test", "1 hour").await;
    let mut pruning = Vec::new();
    for _ in 0..3 {
        let pool = database.another_pool(2).await;
        pruning.push(tokio::spawn(async move { prune(&pool, days(1)).await }));
    }
    let mut deleted = 0;
    for pruned in pruning {
        deleted += pruned.await.unwrap().unwrap().deliveries;
    }
    assert_eq!(deleted, 20_000);
    assert_rows!(database, claims: 0, effects: 0);
}

/// After an hour, a process registers its window again with its next delivery.
#[tokio::test]
async fn g12_a_window_that_somebody_has_deleted_is_on_record_again_within_the_hour() {
    let app = TestApp::github(write_effect).await;
    let database = &app.database;
    let on_record = async || -> i64 {
        sqlx::query_scalar("select count(*) from idempotent_webhook.redelivery_windows")
            .fetch_one(&database.pool)
            .await
            .unwrap()
    };
    assert_eq!(app.send(github("a", "{}")).await.status, 200);
    assert_eq!(on_record().await, 1);
    database
        .run("delete from idempotent_webhook.redelivery_windows")
        .await;
    assert_eq!(app.send(github("b", "{}")).await.status, 200);
    assert_eq!(on_record().await, 0);

    let_pass(Duration::from_secs(61 * 60)).await;
    assert_eq!(app.send(github("c", "{}")).await.status, 200);
    assert_eq!(on_record().await, 1);
}

/// The endpoint no longer exists, and its provider can no longer retry.
#[tokio::test]
async fn a_window_that_is_over_does_not_hold_up_pruning() {
    let database = Database::new().await;
    database.has_window("gone", "60 days").await;
    database.has_window("test", "3 days").await;
    assert!(prune(&database.pool, days(30)).await.is_err());
    database
        .run(
            "update idempotent_webhook.redelivery_windows
             set registered_at = now() - interval '62 days' where endpoint = 'gone'",
        )
        .await;
    assert!(prune(&database.pool, days(30)).await.is_ok());
    assert!(prune(&database.pool, days(2)).await.is_err());
}

/// If retention waited for such a transaction, everything that waits for retention would wait for
/// the transaction as well.
#[tokio::test(flavor = "multi_thread")]
async fn g12_retention_does_not_wait_for_a_transaction_that_has_claimed_a_kept_delivery() {
    let app = TestApp::github(write_effect).await;
    let database = &app.database;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             select 'test', id, state, 1, now() - interval '50 days'
             from unnest('{a,b,c}'::text[], '{dead,dead,recorded}'::text[]) as _ (id, state);
             insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'processed', 'dead', 1, now());
             insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'processed')",
        )
        .await;
    database.has_window("test", "1 day").await;
    let claiming = another(
        database,
        "select idempotent_webhook.claim('test', '', 'a', 'push');
         select from idempotent_webhook.kept_deliveries where delivery_id = 'processed' for update",
    )
    .await;
    let pruned = soon(prune(&database.pool, days(40))).await.unwrap();
    assert_eq!(pruned.failures, 2);
    let sent = soon(app.send(github("b", "{}"))).await;
    assert_eq!((sent.status, &*sent.outcome), (200, "processed"));
    claiming.commit().await.unwrap();
    soon(prune(&database.pool, days(40))).await.unwrap();
    let kept = "select count(*) from idempotent_webhook.kept_deliveries";
    assert_eq!(database.count(kept).await, 0);
    assert_rows!(database, claims: 3, effects: 1);
}

/// A row in `sent_again` notes that a delivery came again. Operations that started before that need
/// it, so it stays for a day.
#[tokio::test]
async fn g12_that_a_delivery_came_again_is_known_for_a_day() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.sent_again (endpoint, delivery_id, received_at)
             select 'test', hours, now() - hours * interval '1 hour' from unnest(array[1, 23, 25]) as hours",
        )
        .await;
    prune(&database.pool, days(365)).await.unwrap();
    database
        .until(
            "(select array_agg(delivery_id order by delivery_id) from idempotent_webhook.sent_again)
                = array['1', '23']",
        )
        .await;
    assert_rows!(database, claims: 0, effects: 0);
}

/// All old rows belong to one batch, and another transaction has locked one of them. Retention
/// leaves the batch for later.
#[tokio::test(flavor = "multi_thread")]
async fn g12_retention_waits_for_a_moment_only_for_what_a_transaction_has_advanced_or_deleted() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.subjects (endpoint, subject, version, advanced_at)
             select 'test', n, n, now() - interval '50 days' from generate_series(1, 2) as n;
             insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             select 'test', n, now() - interval '50 days' from generate_series(1, 2) as n",
        )
        .await;
    database.has_window("test", "1 day").await;
    let holder = another(
        &database,
        "select idempotent_webhook.advance('test', '', '1', 5);
         delete from idempotent_webhook.deliveries where delivery_id = '1'",
    )
    .await;
    let log = logged(async {
        let pruned = soon(prune(&database.pool, days(40))).await.unwrap();
        assert_eq!((pruned.deliveries, pruned.subjects), (0, 0));
    })
    .await;
    for table in ["deliveries", "subjects"] {
        let left = format!(
            "another transaction holds one of its rows endpoint=\"test\" table=\"{table}\" rows=2"
        );
        assert!(log.contains(&left), "{table}: {log}");
    }
    assert_rows!(database, claims: 2, effects: 0);
    holder.rollback().await.unwrap();
    let pruned = soon(prune(&database.pool, days(40))).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (2, 2));
    assert_rows!(database, claims: 0, effects: 0);
}
