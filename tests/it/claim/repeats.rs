//! The same body under another id, and the same id with another body.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{Endpoint, IdempotentWebhook, Secrets, TenantSecrets, presets, prune};

use crate::support::{
    Database, Failing, NOTHING_KEPT, TestApp, answer, assert_rows, gated, github, github_delivery,
    keep, logged, recover, secret, send, send_copies, spawn_send, until_all_wait, write_effect,
};

/// The body of a delivery that GitHub has sent before.
const PUSH: &str =
    r#"{"ref":"refs/heads/main","after":"6dcb09b5b57875f334f61aebed695e2e4193db5e"}"#;

async fn guarded() -> TestApp {
    TestApp::github_with(IdempotentWebhook::replay_guard, write_effect).await
}

#[tokio::test]
async fn a_captured_delivery_under_a_new_guid_is_a_duplicate_and_suspicious() {
    let app = guarded().await;
    assert_eq!(
        app.send(github("72d3162e-cc78", PUSH)).await,
        answer(200, "processed", "done")
    );
    let log = logged(async {
        assert_eq!(
            app.send(github("0badc0de-0000", PUSH)).await,
            answer(200, "duplicate", "")
        );
    })
    .await;
    for part in [
        "WARN",
        "webhook suspicious",
        r#"delivery_id="0badc0de-0000""#,
        r#"first_delivery_id="72d3162e-cc78""#,
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains("refs/heads"), "{log}");
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);

    // Neither a retry of the delivery nor another event is suspicious.
    let log = logged(async {
        assert_eq!(
            app.send(github("72d3162e-cc78", PUSH)).await.outcome,
            "duplicate"
        );
        let create = github_delivery().id("b").event_type("create");
        for other in [create.body(PUSH).request(), github("c", "{}")] {
            assert_eq!(app.send(other).await.outcome, "processed");
        }
    })
    .await;
    assert!(!log.contains("WARN"), "{log}");
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test]
async fn without_the_guard_a_captured_delivery_is_processed_under_a_new_guid() {
    let app = TestApp::github(write_effect).await;
    for id in ["a", "b"] {
        assert_eq!(app.send(github(id, PUSH)).await.outcome, "processed");
    }
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_guids_at_once_for_one_body_one_is_processed() {
    let app = guarded().await;
    let elsewhere = app
        .elsewhere_with(IdempotentWebhook::replay_guard, write_effect)
        .await;
    let routers = [app.router.clone(), elsewhere];
    for round in 0..10 {
        let body = format!(r#"{{"round":{round}}}"#);
        let next = std::sync::atomic::AtomicU32::new(0);
        let request = || {
            let copy = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            github(&format!("{round}-{copy}"), body.clone())
        };
        let answers = send_copies(&routers, 20, request).await;
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        let processed = answers.iter().filter(|a| a.outcome == "processed");
        assert_eq!(processed.count(), 1);
    }
    assert_rows!(app.database, claims: 10, effects: 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_recovery_has_processed_is_a_duplicate_under_another_id() {
    let app = TestApp::recovered(
        presets::github(secret()),
        |layer, recovery| layer.keep(keep(recovery)).replay_guard(),
        Failing::times(1).handler(),
    )
    .await;
    assert_eq!(app.send(github("a", PUSH)).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(
        app.send(github("b", PUSH)).await,
        answer(200, "duplicate", "")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn what_was_pruned_may_be_said_again() {
    let app = guarded().await;
    let database = &app.database;
    assert_eq!(app.send(github("a", PUSH)).await.outcome, "processed");
    for table in ["deliveries", "bodies"] {
        let age = "set received_at = now() - interval '9 days'";
        database
            .run(&format!("update idempotent_webhook.{table} {age}"))
            .await;
    }
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    assert_eq!(prune(&database.pool, week).await.unwrap().deliveries, 1);
    assert_eq!(app.send(github("b", PUSH)).await.outcome, "processed");
    assert_rows!(database, claims: 1, effects: 2);
}

#[tokio::test]
async fn bodies_are_those_of_an_endpoint_and_a_tenant() {
    let database = Database::new().await;
    let pool = &database.pool;
    let mut routes = Vec::new();
    for endpoint in ["billing", "audit"] {
        let secrets = TenantSecrets::new(
            |head| head.uri.query().map(str::to_owned),
            async |_| Ok(Some(Secrets::new(secret()))),
        );
        let github = presets::github(secrets.separate_ids());
        let layer = IdempotentWebhook::new(pool.clone(), endpoint, github).replay_guard();
        let router = Router::new().route("/", post(write_effect).layer(layer));
        for tenant in ["acme", "globex"] {
            routes.push((router.clone(), endpoint, tenant));
        }
    }
    let outcomes = async |id: &str| {
        let mut outcomes = Vec::new();
        for (router, _, tenant) in &routes {
            let sent = github_delivery().uri(&format!("/?{tenant}")).id(id);
            outcomes.push(send(router, sent.request()).await.outcome);
        }
        outcomes
    };
    assert_eq!(outcomes("a").await, ["processed"; 4]);
    assert_eq!(outcomes("b").await, ["duplicate"; 4]);
    assert_rows!(database, claims: 4, effects: 4);

    let (_, endpoint, tenant) = routes[0];
    let forgotten = Endpoint::new(pool.clone(), endpoint)
        .tenant(tenant)
        .forget("a")
        .await;
    assert!(forgotten.unwrap());
    let only_there = ["processed", "duplicate", "duplicate", "duplicate"];
    assert_eq!(outcomes("c").await, only_there);
    assert_rows!(database, claims: 4, effects: 5);
}

/// A body that is in flight and is replayed under many ids does not use up the pool.
#[tokio::test(flavor = "multi_thread")]
async fn g7_replays_of_a_body_in_flight_hold_no_connection() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(IdempotentWebhook::replay_guard, handler).await;
    let first = spawn_send(&app.router, github("first", PUSH));
    gate.reached().await;
    let replays: Vec<_> = (0..20)
        .map(|n| spawn_send(&app.router, github(&format!("replay-{n}"), PUSH)))
        .collect();
    let other = spawn_send(&app.router, github("other", "{}"));
    gate.reached().await;
    assert_eq!(app.database.in_transaction().await, 2);
    gate.open();
    gate.open();
    assert_eq!(other.await.unwrap().outcome, "processed");
    assert_eq!(first.await.unwrap().outcome, "processed");
    for replay in replays {
        assert_eq!(replay.await.unwrap(), answer(200, "duplicate", ""));
    }
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_a_body_in_flight_elsewhere_is_waited_for_within_bounds() {
    let (mut gate, slow) = gated();
    let app = TestApp::github_with(
        |layer| {
            layer
                .replay_guard()
                .in_flight_timeout(Duration::from_millis(200))
        },
        write_effect,
    )
    .await;
    let elsewhere = app
        .elsewhere_with(IdempotentWebhook::replay_guard, slow)
        .await;
    let first = spawn_send(&elsewhere, github("a", PUSH));
    gate.reached().await;
    assert_eq!(app.send(github("b", PUSH)).await.outcome, "in-flight");
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(app.send(github("b", PUSH)).await.outcome, "duplicate");
    assert_rows!(app.database, claims: 1, effects: 1);
    app.settled().await;
}

/// The delivery `a` was processed, and comes again with another body, so it is a duplicate. Before the layer knows
/// this, the delivery `b` comes with that other body and waits. The body itself was never processed, so `b` is
/// processed.
#[tokio::test]
async fn a_body_that_only_came_with_a_duplicate_has_not_been_processed() {
    let app = guarded().await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    // While the pool has no free connection, no request makes progress.
    let mut connections = Vec::new();
    for _ in 0..5 {
        connections.push(app.database.pool.acquire().await.unwrap());
    }
    let rendered_anew = spawn_send(&app.router, github("a", "{ }"));
    until_all_wait().await;
    let its_own = spawn_send(&app.router, github("b", "{ }"));
    until_all_wait().await;
    drop(connections);
    assert_eq!(rendered_anew.await.unwrap().outcome, "duplicate");
    assert_eq!(its_own.await.unwrap().outcome, "processed");
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn a_body_whose_first_processing_failed_is_processed_under_its_next_id() {
    let app = guarded().await;
    let elsewhere = app
        .elsewhere_with(IdempotentWebhook::replay_guard, async || {
            axum::http::StatusCode::INTERNAL_SERVER_ERROR
        })
        .await;
    assert_eq!(send(&elsewhere, github("a", PUSH)).await.status, 500);
    assert_eq!(app.send(github("b", PUSH)).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn another_body_under_the_same_id_is_a_plain_duplicate() {
    let app = guarded().await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let log = logged(async {
        let duplicate = answer(200, "duplicate", "");
        assert_eq!(app.send(github("a", "[]")).await, duplicate);
    })
    .await;
    assert!(!log.contains("WARN"), "{log}");
    assert_rows!(app.database, claims: 1, effects: 1);
}
