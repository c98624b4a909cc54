//! Faults that a recovery must not have: attempts past the schedule, and deliveries that wait for
//! ever or are run although an operator has stopped them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{Request, StatusCode};
use axum::middleware::map_request;
use axum::routing::post;
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Recovery, presets};

use crate::recovery::{Failing, NOTHING_KEPT, ONE_DEAD, SOON, endpoint, keep, kept, recover};
use crate::support::{
    Database, TestApp, assert_rows, gated, github, github_delivery, insert_effect, logged, secret,
    send, spawn_send, write_effect,
};

/// A router whose requests take a while to reach the layer, as behind a rate limit.
fn delayed(router: &Router) -> Router {
    router
        .clone()
        .layer(map_request(|request: Request<Body>| async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            request
        }))
}

const IS_RUNNING: &str = "exists (
    select from idempotent_webhook.kept_deliveries where running_until > now()
)";

/// Each attempt kills its process before anything is written down of its end.
#[tokio::test(flavor = "multi_thread")]
async fn r6_a_delivery_that_kills_its_process_is_not_run_past_its_schedule() {
    let failing = Failing::times(99);
    let (told, mut dead) = tokio::sync::mpsc::unbounded_channel();
    let set = |layer| {
        keep(layer).on_dead(move |delivery, reason| {
            let provider = delivery.provider().to_owned();
            told.send((provider, delivery.id().to_string(), reason.to_owned()))
                .unwrap();
        })
    };
    let app = TestApp::github_with(set, failing.handler()).await;
    app.send(github("a", "{}")).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set attempts = 5, retries = 4, next_attempt_at = now(), running_until = now()",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1]);
    let (provider, id, reason) = dead.try_recv().unwrap();
    assert_eq!((&*provider, &*id), ("github", "a"));
    assert!(reason.contains("its attempts did not end"), "{reason}");
    assert!(dead.try_recv().is_err(), "told twice");
    app.database
        .until("exists (select from idempotent_webhook.activity where outcome = 'dead')")
        .await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// An attempt that was cut off at the shutdown would have been counted for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn r7_stopping_waits_for_the_attempt_that_runs() {
    let (mut gate, gated) = gated();
    let handler = move |tx: DedupeTx, delivery: Delivery| {
        let gated = gated.clone();
        async move {
            match delivery.attempt() {
                1 => StatusCode::INTERNAL_SERVER_ERROR,
                _ => gated(tx, delivery).await,
            }
        }
    };
    let app = TestApp::github_with(keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    gate.reached().await;
    let mut stopping = tokio::spawn(recovery.stop());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut stopping).await;
    assert!(early.is_err(), "it has not waited");
    gate.open();
    stopping.await.unwrap();
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_body_that_was_too_large_the_first_time_is_due_at_a_time() {
    let failing = Failing::times(2);
    let app =
        TestApp::github_with(|layer| keep(layer).keep_body_limit(10), failing.handler()).await;
    app.send(github("a", "0123456789a")).await;
    // The retry of the provider is smaller, so it can be kept.
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let listed = endpoint(&app).kept(&Filter::new(), 1).await.unwrap();
    assert!(listed[0].next_attempt_at.is_some(), "{listed:?}");
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r8_what_a_handler_discards_is_not_kept_since_a_failure_before() {
    let runs = Arc::new(AtomicU32::new(0));
    let handler = move |_: DedupeTx| {
        let first = runs.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let error = HandlerError::new("no such account");
            Err::<(), _>(if first { error } else { error.discard() })
        }
    };
    let app = TestApp::github_with(keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    app.send(github("a", "{}")).await;
    app.database.until(NOTHING_KEPT).await;
}

#[tokio::test]
async fn r8_the_longest_delay_of_a_handler_can_be_stored() {
    let handler = |_: DedupeTx| async {
        Err::<(), _>(HandlerError::new("not yet").retry_after(Duration::MAX))
    };
    let app = TestApp::github_with(keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
}

#[tokio::test]
async fn r12_a_delivery_that_is_dead_at_once_is_reported_once() {
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([]);
    let app = TestApp::github_with(set, Failing::times(9).handler()).await;
    let log = logged(async {
        for _ in 0..3 {
            assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        }
    })
    .await;
    assert_eq!(log.matches("webhook dead").count(), 1, "{log}");
    assert_eq!(kept(&app.database).await, ("dead".into(), 3, 0));
}

/// `Handler::layer` makes the service for each request.
#[tokio::test(flavor = "multi_thread")]
async fn r11_a_layer_on_a_handler_is_served() {
    let database = Database::new().await;
    let github_layer =
        IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let failing = Failing::times(1);
    let handler = failing.handler().layer(keep(github_layer));
    let router: Router = Router::new().route("/", post(handler));
    assert_eq!(send(&router, github("a", "{}")).await.outcome, "kept");
    let recovery = Recovery::new(database.pool.clone(), router).spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(database, claims: 1, effects: 1);
}

/// The process that forgot it cannot tell the caches of the others.
#[tokio::test(flavor = "multi_thread")]
async fn r5_a_cache_does_not_end_what_is_kept() {
    let set = |layer| keep(layer).cache_processed(100, Duration::from_secs(600));
    let app = TestApp::github_with(set, write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    app.database
        .run("delete from idempotent_webhook.deliveries; delete from effects")
        .await;
    let elsewhere = app.elsewhere_with(keep, Failing::times(9).handler()).await;
    assert_eq!(send(&elsewhere, github("a", "{}")).await.outcome, "kept");
    drop(elsewhere);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r13_what_is_discarded_before_its_attempt_begins_is_not_run() {
    let failing = Failing::times(1);
    let app = TestApp::github_with(keep, failing.handler()).await;
    app.send(github("a", "{}")).await;
    let log = logged(async {
        let recovery = Recovery::new(app.database.pool.clone(), delayed(&app.router)).spawn();
        app.database.until(IS_RUNNING).await;
        assert!(endpoint(&app).discard("a").await.unwrap());
        recovery.stop().await;
    })
    .await;
    assert_eq!(failing.attempts(), [1]);
    assert_rows!(app.database, claims: 0, effects: 0);
    // It is no duplicate: a request that waits for this attempt is not answered as one.
    assert!(log.contains("was discarded or forgotten"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_what_is_forgotten_before_its_attempt_begins_does_not_run_by_itself() {
    let failing = Failing::times(1);
    let app = TestApp::github_with(keep, failing.handler()).await;
    app.send(github("a", "{}")).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let recovery = Recovery::new(app.database.pool.clone(), delayed(&app.router)).spawn();
    app.database.until(IS_RUNNING).await;
    assert!(endpoint(&app).forget("a").await.unwrap());
    recovery.stop().await;
    assert_rows!(app.database, claims: 0, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_paused_endpoint_accepts_and_does_not_run() {
    let failing = Failing::times(0);
    let set = |layer| keep(layer).accept_first();
    let app = TestApp::github_with(set, failing.handler()).await;
    endpoint(&app).pause().await.unwrap();
    let recovery = recover(&app);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    tokio::time::sleep(20 * SOON).await;
    assert!(failing.attempts().is_empty());
    assert_eq!(kept(&app.database).await, ("due".into(), 0, 0));

    endpoint(&app).resume().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Handlers that run in the background leave connections for those who come.
#[tokio::test(flavor = "multi_thread")]
async fn r15_slow_handlers_do_not_keep_others_from_being_accepted() {
    let set = |layer| keep(layer).accept_first();
    let slow = |mut tx: DedupeTx, delivery: Delivery| async move {
        insert_effect(&mut tx, &delivery).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok::<_, HandlerError>(())
    };
    let app = TestApp::github_with(set, slow).await;
    let sent: Vec<_> = (0..20)
        .map(|id| spawn_send(&app.router, github(&format!("id-{id}"), "{}")))
        .collect();
    for sent in sent {
        assert_eq!(sent.await.unwrap().outcome, "accepted");
    }
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 20, effects: 20);
}

/// The sender has hung up before it had an answer.
#[tokio::test(flavor = "multi_thread")]
async fn r15_a_sender_that_hangs_up_leaves_nothing_that_waits() {
    let set = |layer| keep(layer).accept_first();
    let app = TestApp::github_with(set, write_effect).await;
    for step in 0..40 {
        let sent = spawn_send(&app.router, github(&format!("id-{step}"), "{}"));
        tokio::time::sleep(Duration::from_micros(100 * step)).await;
        sent.abort();
    }
    // However busy the machine is, this one is accepted.
    assert_eq!(app.send(github("last", "{}")).await.outcome, "accepted");
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let rows = app.database.rows().await;
    assert!(rows.effects > 0 && rows.claims == rows.effects, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_a_route_below_the_layer_that_is_gone_costs_no_attempt() {
    let database = Database::new().await;
    let layer = || {
        keep(IdempotentWebhook::new(
            database.pool.clone(),
            "test",
            presets::github(secret()),
        ))
    };
    let failing = Failing::times(1);
    let whole = |path| {
        Router::new()
            .route(path, post(failing.handler()))
            .layer(layer())
    };
    let before: Router = whole("/");
    assert_eq!(send(&before, github("a", "{}")).await.outcome, "kept");
    drop(before);
    let recovery = Recovery::new(database.pool.clone(), whole("/elsewhere")).spawn();
    let waits = "exists (
        select from idempotent_webhook.kept_deliveries
        where next_attempt_at > now() + interval '30 seconds' and running_until is null
    )";
    database.until(waits).await;
    recovery.stop().await;
    assert_eq!(kept(&database).await, ("due".into(), 1, 0));
    assert_rows!(database, claims: 0, effects: 0);
}

/// The assertion rolls a first attempt back, which is not a failure to be kept.
#[tokio::test(flavor = "multi_thread")]
async fn the_assertion_works_on_layers_that_keep_and_accept() {
    for accept_first in [false, true] {
        let set = move |layer| match accept_first {
            true => keep(layer).accept_first(),
            false => keep(layer),
        };
        let app = TestApp::github_with(set, write_effect).await;
        let effects = async || app.database.rows().await.effects;
        assert_idempotent(&app.router, &github_delivery(), effects).await;
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}
