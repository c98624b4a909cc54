//! What came in and what became of it, counted by hour and outcome.

use std::time::Duration;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{IdempotentWebhook, Keep, Retention, presets};

use crate::support::{
    Database, Failing, NOTHING_KEPT, TestApp, github, logged, recover, secret, send, soon,
    write_effect,
};

type Counted = Vec<(String, String, i64)>;

async fn counted(database: &Database) -> Counted {
    sqlx::query_as(
        "select source, outcome, sum(count)::int8
         from idempotent_webhook.activity
         where endpoint = 'test'
         group by source, outcome
         order by source, outcome",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

fn expected(counted: &[(&str, &str, i64)]) -> Counted {
    counted
        .iter()
        .map(|(source, outcome, count)| ((*source).into(), (*outcome).into(), *count))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_outcome_within_seconds() {
    let app = TestApp::github(write_effect).await;
    for id in ["a", "a", "b"] {
        app.send(github(id, "{}")).await;
    }
    let forged = TestDelivery::new(&presets::github(secret())).tampered();
    assert_eq!(app.send(forged.request()).await.status, 401);
    app.database
        .until("(select sum(count) from idempotent_webhook.activity) = 4")
        .await;
    let first = [
        ("request", "duplicate", 1),
        ("request", "processed", 2),
        ("request", "rejected", 1),
    ];
    assert_eq!(counted(&app.database).await, expected(&first));
    app.database
        .until(
            "not exists (
                select from idempotent_webhook.activity
                where hour <> date_trunc('hour', now(), 'UTC') or now() - last_at > '1 min'
            )",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_of_recovery_are_counted_apart() {
    let failing = Failing::times(2);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    app.send(github("a", "{}")).await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    app.database
        .until("(select sum(count) from idempotent_webhook.activity) = 3")
        .await;
    let all = [
        ("recovery", "kept", 1),
        ("recovery", "processed", 1),
        ("request", "kept", 1),
    ];
    assert_eq!(counted(&app.database).await, expected(&all));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_deliveries_are_counted() {
    let failing = Failing::times(100);
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, failing.handler()).await;
    app.send(github("a", "{}")).await;
    app.database
        .until("(select sum(count) from idempotent_webhook.activity) = 2")
        .await;
    let all = [("recovery", "dead", 1), ("request", "kept", 1)];
    assert_eq!(counted(&app.database).await, expected(&all));
}

/// A process that ends in order loses nothing.
#[tokio::test]
async fn what_is_counted_is_written_when_the_layer_is_drained() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    send(&router, github("a", "{}")).await;
    layer.drained().await;
    let one = [("request", "processed", 1)];
    assert_eq!(counted(&database).await, expected(&one));
    // Not once more.
    layer.drained().await;
    assert_eq!(counted(&database).await, expected(&one));
}

#[tokio::test]
async fn two_processes_add_to_one_count() {
    let app = TestApp::github(write_effect).await;
    let layers = [
        app.database.another_pool(2).await,
        app.database.another_pool(2).await,
    ]
    .map(|pool| IdempotentWebhook::new(pool, "test", presets::github(secret())));
    for (number, layer) in layers.iter().enumerate() {
        let handler = axum::routing::post(write_effect).layer(layer.clone());
        let router = axum::Router::new().route("/", handler);
        send(&router, github(&number.to_string(), "{}")).await;
    }
    let [one, other] = layers;
    tokio::join!(one.drained(), other.drained());
    let both = [("request", "processed", 2)];
    assert_eq!(counted(&app.database).await, expected(&both));
}

#[tokio::test]
async fn what_cannot_be_written_is_written_later() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    database
        .run("alter table idempotent_webhook.activity rename to away")
        .await;
    send(&router, github("a", "{}")).await;
    let log = logged(layer.drained()).await;
    assert!(log.contains("could not write the activity"), "{log}");
    database
        .run("alter table idempotent_webhook.away rename to activity")
        .await;
    send(&router, github("b", "{}")).await;
    layer.drained().await;
    let both = [("request", "processed", 2)];
    assert_eq!(counted(&database).await, expected(&both));
}

#[tokio::test]
async fn counting_can_be_switched_off() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .count_activity(false);
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    send(&router, github("a", "{}")).await;
    layer.drained().await;
    assert_eq!(counted(&database).await, []);
}

/// Nor does the pool stay open for it.
#[tokio::test]
async fn a_closed_pool_ends_the_writer() {
    let database = Database::new().await;
    let pool = database.another_pool(2).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let handler = axum::routing::post(write_effect).layer(layer);
    let router = axum::Router::new().route("/", handler);
    send(&router, github("a", "{}")).await;
    soon(pool.close()).await;
    let log = logged(tokio::time::sleep(Duration::from_secs(6))).await;
    assert!(!log.contains("activity"), "{log}");
}

#[tokio::test]
async fn retention_deletes_old_activity_and_remembers_before_when_deliveries_are_deleted() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.activity
                (endpoint, hour, source, outcome, count, last_at)
             select 'test', date_trunc('hour', now() - age, 'UTC'), 'request', 'processed', 1, now()
             from unnest(array[interval '1 hour', interval '44 days', interval '46 days']) as age;
             insert into idempotent_webhook.operator_actions (action, endpoint, began_at)
             select 'pause', 'test', now() - age
             from unnest(array[interval '300 days', interval '400 days']) as age",
        )
        .await;
    let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
    let retention = Retention::new(database.pool.clone(), days(45)).every(Duration::ZERO);
    let task = retention.spawn();
    database
        .until(
            "exists (
                select from idempotent_webhook.pruned
                where before between now() - interval '45 days 1 min' and now() - interval '45 days'
            )",
        )
        .await;
    database
        .until("(select count(*) from idempotent_webhook.operator_actions) = 1")
        .await;
    task.stop().await;
    let two = [("request", "processed", 2)];
    assert_eq!(counted(&database).await, expected(&two));
    // One row, and the later time of two.
    idempotent_webhook::prune(&database.pool, days(60))
        .await
        .unwrap();
    database
        .until(
            "(select count(*) from idempotent_webhook.pruned) = 1
             and (select before from idempotent_webhook.pruned) > now() - interval '46 days'",
        )
        .await;
}

/// Whatever the order of the settings.
#[tokio::test]
async fn what_is_counted_is_written_within_the_layers_time_for_the_database() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .count_activity(true)
        .database_timeout(Duration::from_millis(50));
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    let forged = TestDelivery::new(&presets::github(secret())).tampered();
    send(&router, forged.request()).await;

    let taken = pool.acquire().await.unwrap();
    let free_later = async {
        tokio::time::sleep(Duration::from_millis(1000)).await;
        drop(taken);
    };
    let log = logged(async {
        tokio::join!(layer.drained(), free_later);
    })
    .await;
    assert!(
        log.contains("all 1 connections of the pool are in use"),
        "{log}"
    );
    assert_eq!(counted(&database).await, []);
    layer.drained().await;
    assert_eq!(
        counted(&database).await,
        expected(&[("request", "rejected", 1)])
    );
}
