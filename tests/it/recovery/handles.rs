//! A layer belongs to the recovery handle that runs its kept deliveries, so deliveries of one
//! handle never run through another.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Keep, Outcome, Recovery, presets};

use crate::support::{
    Database, Failing, NOTHING_KEPT, SOON, TestApp, answer, assert_rows, github, insert_effect,
    keep, keep_all, keeping_by, logged, recover_all, recovery, secret, send, soon, until_logged,
};

/// A router with one route, whose handler fails once.
fn failing_once(database: &Database, path: &str, recovery: &Recovery) -> Router {
    let github = presets::github(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", github)
        .keep(Keep::failed(recovery).retry_delays([SOON]));
    Router::new().route(path, post(Failing::times(1).handler()).layer(layer))
}

#[tokio::test(flavor = "multi_thread")]
async fn k1_two_databases_and_two_routers_of_a_process_do_not_mix() {
    // Both databases have the same endpoint. Each router has a route that the other router lacks.
    let (one, other) = (Database::new().await, Database::new().await);
    let (first, second) = (recovery(&one.pool), recovery(&other.pool));
    let routers = [
        failing_once(&one, "/one", &first),
        failing_once(&other, "/other", &second),
    ];
    for (router, path) in routers.iter().zip(["/one", "/other"]) {
        let mut request = github("a", "{}");
        *request.uri_mut() = path.parse().unwrap();
        assert_eq!(send(router, request).await.outcome, "kept");
    }
    let [router, another] = routers;
    let tasks = [first.spawn(router), second.spawn(another)];
    for database in [&one, &other] {
        database.until(NOTHING_KEPT).await;
        assert_rows!(database, claims: 1, effects: 1);
    }
    for task in tasks {
        task.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k1_two_routers_on_one_database_have_a_handle_each() {
    let database = Database::new().await;
    let layer = |endpoint: &str, recovery: &Recovery| {
        let github = presets::github(secret());
        IdempotentWebhook::new(database.pool.clone(), endpoint.to_owned(), github)
            .keep(Keep::failed(recovery).retry_delays([SOON]))
    };
    let (first, second) = (recovery(&database.pool), recovery(&database.pool));
    let route = |endpoint, recovery: &Recovery| {
        let handler = post(Failing::times(1).handler());
        Router::new().route("/", handler.layer(layer(endpoint, recovery)))
    };
    let (one, other) = (route("one", &first), route("other", &second));
    assert_eq!(send(&one, github("a", "{}")).await.outcome, "kept");
    assert_eq!(send(&other, github("a", "{}")).await.outcome, "kept");
    let tasks = [first.spawn(one), second.spawn(other)];
    database.until(NOTHING_KEPT).await;
    for task in tasks {
        task.stop().await;
    }
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn k1_a_forgotten_spawn_is_a_warning() {
    let app = TestApp::keeping(|keep| keep, StatusCode::BAD_GATEWAY).await;
    let log = logged(async {
        assert_eq!(app.send(github("a", "{}")).await, answer(502, "kept", ""));
        until_logged("this process does not run them again").await;
    })
    .await;
    assert!(
        log.contains(r#"endpoint="test""#) && log.contains("Recovery::spawn"),
        "{log}"
    );
    assert_eq!(app.database.kept().await.state, "due");
}

#[tokio::test]
async fn k4b_due_deliveries_of_an_endpoint_that_nobody_serves_are_a_warning() {
    let app = TestApp::keeping(|keep| keep, StatusCode::OK).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select 'renamed', n::text, 'due', 1, now() from generate_series(1, 3) as n",
        )
        .await;
    let log = logged(async {
        let recovery = app.recovery.clone().spawn(app.router.clone());
        until_logged("webhook deliveries are due, but no process runs them").await;
        recovery.stop().await;
    })
    .await;
    assert!(
        log.contains(r#"endpoint="renamed" problem="unserved""#),
        "{log}"
    );
}

#[tokio::test]
async fn k8_a_test_makes_the_attempts_that_are_due() {
    let failing = Failing::times(2);
    let app = TestApp::keeping(
        |keep| keep.retry_delays([Duration::ZERO, Duration::from_secs(3600)]),
        failing.handler(),
    )
    .await;
    let run = async || {
        let results = app.recovery.run_due(&app.router).await.unwrap();
        let outcome = |result: idempotent_webhook::recovery::AttemptResult| {
            (result.delivery.id().to_string(), result.outcome)
        };
        results.into_iter().map(outcome).collect::<Vec<_>>()
    };
    assert_eq!(run().await, []);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(run().await, [("a".to_owned(), Some(Outcome::Kept))]);
    assert_eq!(run().await, [], "it is due in an hour");
    app.database.make_due().await;
    assert_eq!(run().await, [("a".to_owned(), Some(Outcome::Processed))]);
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(failing.attempts(), [1, 2, 3]);
    soon(app.database.until(NOTHING_KEPT)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r16_each_attempt_knows_its_number_and_has_the_first_ones_time_and_idempotency_key() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = seen.clone();
        async move |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await.unwrap();
            let (attempt, first) = (delivery.attempt(), delivery.first_received_at());
            let key = delivery.idempotency_key("refund");
            seen.lock().unwrap().push((attempt, first, key));
            match attempt {
                1 | 2 => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::OK,
            }
        }
    };
    // The delivery is kept before or after its handler has run for the first time.
    for way in [keep as fn(&Recovery) -> Keep, keep_all] {
        let app = keeping_by(way, handler.clone()).await;
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        assert_rows!(app.database, claims: 0, effects: 0);
        let received = "update idempotent_webhook.kept_deliveries
                        set first_received_at = to_timestamp(1790000000)";
        app.database.run(received).await;
        recover_all(&app).await;
        assert_rows!(app.database, claims: 1, effects: 1);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        let first = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let key = &seen[0].2;
        assert!(!key.to_string().is_empty());
        assert_eq!(
            seen[1..],
            [(2, first, key.clone()), (3, first, key.clone())]
        );
        assert_eq!(seen[0].0, 1);
    }
}
