//! Guarantees R6 to R9 and R12: the attempts, which of them count, and what follows the last attempt.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Discarded, Filter, KeptState, Retried};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, Source, presets,
};
use sqlx::Executor;

use crate::late_claim::gated_late;
use crate::support::{
    Database, Failing, NOTHING_KEPT, ONE_DEAD, SOON, TestApp, acme, answer, assert_kept,
    assert_rows, due_after, endpoint, gate, gated, github, github_delivery, held_back,
    insert_due_of, insert_effect, keep, lock, logged, longer_than_a_term_and_silence, recover,
    secret, soon, spawn_send, write_effect,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// What is logged about an attempt that reaches no layer.
const NOT_REACHED: &str = "no layer of this endpoint was reached";

/// Simulates that the process was killed in the middle of an attempt.
#[tokio::test(flavor = "multi_thread")]
async fn r6_an_attempt_that_did_not_end_is_counted_and_followed_by_another_at_once() {
    let failing = Failing::times(1);
    let app = TestApp::keeping(|keep| keep.retry_delays([HOUR; 3]), failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set attempts = 2, retries = 1, takes = 1, next_attempt_at = now(),
                 taken_by = 0",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 3]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A handler may kill its process at every attempt. Two unfinished attempts in a row count as a failure, so the
/// attempts of the delivery are used up eventually.
#[tokio::test(flavor = "multi_thread")]
async fn r6_two_attempts_in_a_row_that_did_not_end_are_a_failure() {
    let failing = Failing::times(1);
    let app = TestApp::keeping(|keep| keep.retry_delays([HOUR; 3]), failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    for (retries, condition) in [(2, due_after("30 minutes")), (3, ONE_DEAD.to_owned())] {
        app.database
            .run(&format!(
                "update idempotent_webhook.kept_deliveries
                 set attempts = 1 + {retries}, retries = {retries}, unfinished = 1,
                     next_attempt_at = now(), taken_by = 0"
            ))
            .await;
        app.database.until(&condition).await;
        let listed = endpoint(&app).kept(&Filter::new(), None, 9).await.unwrap();
        let reason = listed[0].reason.as_deref().unwrap();
        assert!(reason.contains("its attempts did not end"), "{reason}");
        assert_eq!(
            listed[0].attempts,
            1 + retries,
            "the next attempt did not start"
        );
    }
    recovery.stop().await;
    assert_kept!(app.database, "dead", attempts: 4, retries: 3);
    assert_eq!(failing.attempts(), [1]);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The attempt has not claimed the delivery yet, so it holds no lock. Only the heartbeats of its process keep other
/// processes away from the delivery.
#[tokio::test(flavor = "multi_thread")]
async fn r6_an_attempt_that_runs_is_not_taken_over_however_long_it_takes() {
    let (mut gate, way) = gate();
    let set =
        |layer: IdempotentWebhook, recovery: &Recovery| layer.late_claim().keep(keep(recovery));
    let app = TestApp::recovered(presets::github(secret()), set, gated_late(way)).await;
    app.database.insert_due(1).await;
    let (elsewhere, another) = app.elsewhere_keeping(|keep| keep, write_effect).await;
    let recovery = recover(&app);
    gate.reached().await;
    let watching = another.clone().spawn(elsewhere.clone());
    tokio::time::sleep(longer_than_a_term_and_silence()).await;
    watching.stop().await;
    assert!(another.run_due(&elsewhere).await.unwrap().is_empty());
    assert_kept!(app.database, "due", attempts: 2, retries: 1);
    gate.open();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r6_a_404_of_the_handler_is_an_attempt() {
    let app = TestApp::keeping(|keep| keep, async |_: DedupeTx| StatusCode::NOT_FOUND).await;
    let log = logged(async {
        assert_eq!(app.send(github("a", "{}")).await, answer(404, "kept", ""));
        let recovery = recover(&app);
        app.database.until(ONE_DEAD).await;
        recovery.stop().await;
    })
    .await;
    assert!(!log.contains(NOT_REACHED), "{log}");
    assert_kept!(app.database, "dead", attempts: 4, retries: 3);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The URI of the attempt is logged without its query, because the query may contain a token.
#[tokio::test]
async fn r7_an_attempt_that_reaches_no_layer_is_none_and_is_logged_without_its_query() {
    let failing = Failing::times(1);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    let with_a_token = github_delivery().id("a").uri("/?token=s3cret").request();
    let log = logged(async {
        assert_eq!(app.send(with_a_token).await.outcome, "kept");
        let elsewhere = Router::new().route("/another", post(write_effect));
        let recovery = app.recovery.clone().spawn(elsewhere);
        app.database.until(&due_after("50 seconds")).await;
        recovery.stop().await;
    })
    .await;
    assert!(log.contains(NOT_REACHED), "{log}");
    let sent = r#"method="POST" path="/" status=404"#;
    assert!(log.contains(sent), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_eq!(failing.attempts(), [1]);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The router of the process has lost the route. If the waits did not get longer, each delivery would be tried and
/// logged every minute.
#[tokio::test]
async fn r7_what_reaches_no_layer_waits_ever_longer_is_told_once_and_holds_up_nothing() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(300).await;
    app.database
        .run(
            "update idempotent_webhook.kept_requests set uri = '/gone';
             update idempotent_webhook.kept_deliveries
             set unreached_at = now() - interval '10 minutes' where delivery_id = 'due-1'",
        )
        .await;
    let log = logged(async {
        let recovery = recover(&app);
        let all_wait = "300 = (
            select count(*) from idempotent_webhook.kept_deliveries
            where unreached_status = 404 and taken_by is null and attempts = 1
        )";
        app.database.until(all_wait).await;
        // Deliveries that are kept in the meantime are not delayed.
        app.database
            .run(
                "insert into idempotent_webhook.kept_deliveries
                     (endpoint, delivery_id, state, attempts, next_attempt_at)
                 values ('test', 'good', 'due', 1, now());
                 insert into idempotent_webhook.kept_requests
                     (endpoint, delivery_id, format, method, uri, headers, body)
                 values ('test', 'good', 1, 'POST', '/', '', '{}')",
            )
            .await;
        app.database.until("exists (select from effects)").await;
        recovery.stop().await;
    })
    .await;
    assert_eq!(log.matches(NOT_REACHED).count(), 1, "{log}");
    let waits = "(
        select bool_and(
            case delivery_id
                when 'due-1' then next_attempt_at - unreached_at > interval '20 minutes'
                else next_attempt_at - unreached_at = interval '1 minute'
            end
        )
        from idempotent_webhook.kept_deliveries
    )";
    app.database.until(waits).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_a_delivery_that_is_in_flight_elsewhere_costs_no_attempt() {
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let layer = layer.keep(keep(recovery));
        layer.in_flight_timeout(Duration::from_millis(100))
    };
    let failing = Failing::times(1);
    let app = TestApp::recovered(presets::github(secret()), set, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    app.database.make_due().await;
    let (mut gate, handler) = gated();
    let elsewhere = app.elsewhere(handler).await;
    let sent = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;
    assert!(app.recovery.run_due(&app.router).await.unwrap().is_empty());
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    gate.open();
    assert_eq!(sent.await.unwrap().outcome, "processed");
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(failing.attempts(), [1]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The attempt ends while Postgres does not answer, so the process can only give the delivery back later.
#[tokio::test(flavor = "multi_thread")]
async fn r7_an_attempt_that_is_given_back_late_waits_as_well() {
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        layer
            .database_timeout(Duration::from_millis(500))
            .in_flight_timeout(Duration::from_millis(100))
            .keep(keep(recovery))
    };
    let failing = Failing::times(1);
    let app = TestApp::recovered(presets::github(secret()), set, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let (router, mut before_the_layer) = held_back(&app.router);
    // The layer tries for a minute to write the result of the attempt.
    let recovery = app.recovery.clone().stop_limit(Duration::from_secs(3));
    let recovering = recovery.concurrency(1).spawn(router);
    before_the_layer.reached().await;
    // Another attempt is in flight, and the row cannot be written.
    let mut in_flight = app.database.another_pool(1).await.begin().await.unwrap();
    in_flight
        .execute(
            "select pg_advisory_xact_lock(
                hashtextextended('a', hashtextextended('', hashtextextended('test', 0)))
            )",
        )
        .await
        .unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let stopped = tokio::spawn(recovering.stop());
    before_the_layer.open();
    soon(stopped).await.unwrap();
    assert_kept!(app.database, "due", attempts: 2, retries: 1);
    drop(locked);
    app.database.until(&due_after("2 seconds")).await;
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    drop(in_flight);
    assert_eq!(failing.attempts(), [1]);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Another process has taken the delivery over, because this attempt could not be given back in time.
#[tokio::test(flavor = "multi_thread")]
async fn r7_an_attempt_that_is_given_back_late_does_not_end_the_next_one() {
    let failing = Failing::times(1);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let (no_route, mut no_route_gate) =
        held_back(&Router::new().route("/else", post(write_effect)));
    let (elsewhere, another) = app.elsewhere_keeping(|keep| keep, failing.handler()).await;
    let (elsewhere, mut another_gate) = held_back(&elsewhere);
    // With one slot, this process takes no other delivery.
    let late = app.recovery.clone().concurrency(1).spawn(no_route);
    no_route_gate.reached().await;
    let late = tokio::spawn(late.stop());
    app.database.lose_takers().await;
    let next = another.spawn(elsewhere);
    another_gate.reached().await;
    no_route_gate.open();
    soon(late).await.unwrap();
    assert_kept!(app.database, "due", attempts: 3, retries: 2);
    let is_running = "exists (
        select from idempotent_webhook.kept_deliveries where taken_by is not null
    )";
    app.database.until(is_running).await;
    another_gate.open();
    app.database.until(NOTHING_KEPT).await;
    next.stop().await;
    assert_eq!(failing.attempts(), [1, 3]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_handler_says_what_comes_next() {
    async fn handler(_: DedupeTx, delivery: Delivery) -> Result<(), HandlerError> {
        let error = HandlerError::new(delivery.id());
        Err(match delivery.id().as_str() {
            "dead" => error.dead(),
            "discard" => error.discard(),
            "discard later" if delivery.attempt() > 1 => error.discard(),
            "later" => error.retry_after(HOUR),
            _ => error,
        })
    }
    let provider = acme(Source::json("$.id".parse().unwrap()));
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        layer.keep(Keep::failed(recovery).retry_delays([SOON]))
    };
    let app = TestApp::recovered(provider.clone(), set, handler).await;
    let outcome = async |id: &str| {
        let sent = TestDelivery::new(&provider).id(id);
        app.send(sent.request()).await.outcome
    };
    assert_eq!(outcome("dead").await, "kept");
    assert_kept!(app.database, "dead", attempts: 1, retries: 0);
    assert_eq!(
        endpoint(&app).discard("dead").await.unwrap(),
        Discarded::Discarded
    );
    assert_eq!(
        endpoint(&app).discard("dead").await.unwrap(),
        Discarded::NotKept
    );
    assert_eq!(outcome("discard").await, "failed");
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(outcome("later").await, "kept");
    app.database.until(&due_after("50 minutes")).await;
    assert_eq!(outcome("discard later").await, "kept");
    let recovery = recover(&app);
    app.database
        .until("1 = (select count(*) from idempotent_webhook.kept_deliveries)")
        .await;
    recovery.stop().await;
    app.database.until(&due_after("50 minutes")).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r8_what_a_handler_says_at_a_retry_of_the_provider_counts() {
    let runs = Arc::new(AtomicU32::new(0));
    let handler = move |_: DedupeTx| {
        let error = HandlerError::new("not yet");
        let error = match runs.fetch_add(1, Ordering::Relaxed) {
            0 => error.retry_after(Duration::from_secs(600)),
            1 => error.retry_after(HOUR),
            3 => error.dead(),
            _ => error,
        };
        std::future::ready(Err::<(), _>(error))
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    for attempt in 1..=3 {
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        assert_kept!(app.database, "due", attempts: attempt, retries: 0);
        if attempt > 1 {
            // If the handler names no time, the next attempt stays at the same time as before.
            app.database.until(&due_after("30 minutes")).await;
        }
    }
    // The provider's retries alone do not make the delivery due again.
    for attempt in 4..=5 {
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        assert_kept!(app.database, "dead", attempts: attempt, retries: 0);
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_an_endpoint_with_much_to_do_does_not_keep_another_one_waiting() {
    let database = Database::new().await;
    for (endpoint, count) in [("a", 50), ("b", 3), ("c", 3)] {
        insert_due_of(&database, endpoint, &format!("/{endpoint}"), count).await;
    }
    let order = Arc::new(Mutex::new(String::new()));
    let handler = {
        let order = order.clone();
        move |mut tx: DedupeTx, delivery: Delivery| {
            order.lock().unwrap().push_str(delivery.endpoint());
            async move {
                insert_effect(&mut tx, &delivery).await?;
                Ok::<_, HandlerError>(())
            }
        }
    };
    let recovery = Recovery::new(database.pool.clone()).concurrency(1);
    let route = |endpoint: &str| {
        let github = presets::github(secret());
        let layer = IdempotentWebhook::new(database.pool.clone(), endpoint, github);
        post(handler.clone()).layer(layer.keep(keep(&recovery)))
    };
    let router: Router = Router::new()
        .route("/a", route("a"))
        .route("/b", route("b"))
        .route("/c", route("c"));
    let recovery = recovery.spawn(router);
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let order = order.lock().unwrap().clone();
    assert!(order.starts_with("abcabcabc"), "{order}");
    assert_rows!(database, claims: 56, effects: 56);
}

/// Another process keeps the delivery, so no notification wakes recovery in this process.
#[tokio::test(flavor = "multi_thread")]
async fn r9_what_is_kept_elsewhere_is_found_during_a_backlog() {
    let database = Database::new().await;
    insert_due_of(&database, "a", "/a", 500).await;
    let recovery = Recovery::new(database.pool.clone()).concurrency(1);
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        tokio::time::sleep(SOON).await;
        insert_effect(&mut tx, &delivery).await?;
        Ok::<_, HandlerError>(())
    };
    let route = |endpoint: &str| {
        let github = presets::github(secret());
        let layer = IdempotentWebhook::new(database.pool.clone(), endpoint, github);
        post(handler).layer(layer.keep(keep(&recovery)))
    };
    let router: Router = Router::new()
        .route("/a", route("a"))
        .route("/b", route("b"));
    let recovery = recovery.spawn(router);
    let processed = |endpoint: &str| {
        format!("exists (select from idempotent_webhook.deliveries where endpoint = '{endpoint}')")
    };
    database.until(&processed("a")).await;
    insert_due_of(&database, "b", "/b", 1).await;
    database.until(&processed("b")).await;
    database
        .until("exists (select from idempotent_webhook.kept_deliveries where endpoint = 'a')")
        .await;
    recovery.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_after_the_last_attempt_a_delivery_is_dead_until_it_is_retried() {
    let failing = Failing::times(4);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    assert_kept!(app.database, "dead", attempts: 4, retries: 3);
    assert_eq!(failing.attempts(), [1, 2, 3, 4]);
    let dead = Filter::new()
        .state(KeptState::Dead)
        .reason_contains("not yet");
    let listed = endpoint(&app).kept(&dead, None, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].status), (1, Some(500)));

    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Due);
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Processed);
    assert_eq!(endpoint(&app).retry("b").await.unwrap(), Retried::Unchanged);
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2, 3, 4, 5]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_a_dead_delivery_is_reported_once() {
    let dead = Arc::new(Mutex::new(Vec::new()));
    let set = {
        let dead = dead.clone();
        move |keep: Keep| {
            keep.on_dead(move |delivery: &Delivery, reason: &str| {
                let report = (
                    delivery.id().to_string(),
                    delivery.attempt(),
                    reason.to_owned(),
                );
                dead.lock().unwrap().push(report);
                panic!("a hook may panic");
            })
        }
    };
    let app = TestApp::keeping(set, Failing::times(99).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    // A provider retry fails as well, and the delivery stays dead.
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_kept!(app.database, "dead", attempts: 5, retries: 3);
    assert_eq!(
        *dead.lock().unwrap(),
        [("a".to_owned(), 4, "not yet".to_owned())]
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}
