//! Guarantee Handle 1: an application spawns and stops only its recovery handle. The stop ends within a limit, and
//! reports unfinished work.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::recovery::Unfinished;
use idempotent_webhook::{IdempotentWebhook, Recovery, Retention, presets};

use crate::support::{
    Database, TestApp, answer, assert_rows, gated, github, keep, logged, recovery, secret, send,
    soon, spawn_send, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The work that a stop has left unfinished, by name.
fn left(unfinished: &Unfinished) -> Vec<&str> {
    unfinished.iter().collect()
}

#[tokio::test]
async fn handle_1_what_was_added_begins_and_stops_with_it() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id, received_at)
             values ('test', '', 'old', now() - interval '100 days')",
        )
        .await;
    database.has_window("test", "3 days").await;
    let old = "select count(*) from idempotent_webhook.deliveries";
    let recovery = recovery(&database.pool);
    let retention = Retention::new(database.pool.clone(), 30 * DAY).every(Duration::ZERO);
    let recovery = recovery.with(retention);
    assert_eq!(database.count(old).await, 1);
    let task = recovery.spawn(Router::new());
    database
        .until("not exists (select from idempotent_webhook.deliveries)")
        .await;
    assert!(soon(task.stop()).await.is_empty());

    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id, received_at)
             values ('test', '', 'older', now() - interval '200 days')",
        )
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(database.count(old).await, 1);
}

#[tokio::test]
async fn handle_1_a_layer_that_keeps_nothing_is_waited_for_once_it_has_joined() {
    let database = Database::new().await;
    let recovery = recovery(&database.pool);
    let (mut gate, handler) = gated();
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .join(&recovery)
        // Joining a second time changes nothing.
        .join(&recovery);
    let router = Router::new().route("/", post(handler).layer(layer));
    let task = recovery.spawn(router.clone());
    let sent = spawn_send(&router, github("a", "{}"));
    gate.reached().await;
    let stopping = tokio::spawn(task.stop());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!stopping.is_finished());
    gate.open();
    assert!(soon(stopping).await.unwrap().is_empty());
    assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(database, claims: 1, effects: 1);
    // The stop has written the layer's counts.
    let counted = "select sum(count)::bigint from idempotent_webhook.activity
        where source = 'request' and outcome = 'processed'";
    assert_eq!(database.count(counted).await, 1);
}

#[tokio::test]
async fn handle_1_what_has_not_ended_in_time_is_said() {
    let (gate, handler) = gated();
    let app = TestApp::keeping(|keep| keep, handler).await;
    let task = app
        .recovery
        .clone()
        .stop_limit(Duration::from_millis(500))
        .spawn(app.router.clone());
    let sent = spawn_send(&app.router, github("a", "{}"));
    let mut gate = gate;
    gate.reached().await;
    let mut stopped = Unfinished::default();
    let log = logged(async {
        stopped = task.stop_with(std::future::pending::<()>()).await;
    })
    .await;
    assert_eq!(left(&stopped), ["deliveries of test", "the server"]);
    assert_eq!(stopped.to_string(), "deliveries of test, the server");
    assert!(log.contains("webhook work has not ended in time"), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
    // The unfinished work continues for as long as the process lives.
    gate.open();
    assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn handle_1_nothing_begins_while_the_server_waits_for_its_connections() {
    let database = Database::new().await;
    let recovery = Recovery::new(database.pool.clone()).poll_interval(Duration::from_millis(10));
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .keep(keep(&recovery));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let task = recovery.spawn(router.clone());
    assert_eq!(send(&router, github("first", "{}")).await.status, 200);
    let (server, ends) = tokio::sync::oneshot::channel::<()>();
    let stopping = tokio::spawn(task.stop_with(ends));
    tokio::time::sleep(Duration::from_millis(300)).await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, takes, next_attempt_at)
             values ('test', 'due', 'due', 0, 0, now());
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('test', 'due', 1, 'POST', '/', '', '{}')",
        )
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!stopping.is_finished());
    drop(server);
    assert!(soon(stopping).await.unwrap().is_empty());
    let begun = "select takes from idempotent_webhook.kept_deliveries where delivery_id = 'due'";
    assert_eq!(database.count(begun).await, 0);
    assert_rows!(database, claims: 1, effects: 1);
}
