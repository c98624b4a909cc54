//! Guarantees G3 and G7: if copies of a delivery come at the same time, one is processed, and the others wait for it.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, Delivery};

use crate::support::{
    Answer, ONE_WAITS_FOR_A_LOCK, TestApp, answer, assert_rows, gated, github, insert_effect, send,
    send_copies, spawn_send, write_effect,
};

/// A condition to wait for, because a connection on its way back to the pool may still be rolling back for a moment.
const ONE_IN_TRANSACTION: &str = "1 = (
    select count(*) from pg_stat_activity
    where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
)";

fn count(answers: &[Answer], outcome: &str) -> usize {
    answers.iter().filter(|a| a.outcome == outcome).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn g3_one_of_many_simultaneous_deliveries_wins() {
    let app = TestApp::github(write_effect).await;
    for round in 0..10 {
        let request = || github(&round.to_string(), "{}");
        let answers = send_copies(slice::from_ref(&app.router), 50, request).await;
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        assert_eq!(count(&answers, "processed"), 1);
        assert_eq!(count(&answers, "duplicate"), 49);
    }
    assert_eq!(app.runs(), 10);
    assert_rows!(app.database, claims: 10, effects: 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn g3_one_wins_over_several_processes() {
    let app = TestApp::github(write_effect).await;
    let mut routers = vec![app.router.clone()];
    for _ in 0..3 {
        routers.push(app.elsewhere(write_effect).await);
    }
    for round in 0..10 {
        let request = || github(&round.to_string(), "{}");
        let answers = send_copies(&routers, 40, request).await;
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        assert_eq!(count(&answers, "processed"), 1);
    }
    assert_eq!(app.runs(), 10);
    assert_rows!(app.database, claims: 10, effects: 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_if_the_first_fails_one_waiter_runs_the_handler() {
    let attempts = Arc::new(AtomicU32::new(0));
    let app = TestApp::github({
        let attempts = attempts.clone();
        async move |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 => StatusCode::INTERNAL_SERVER_ERROR,
                1 => panic!("on purpose"),
                _ => StatusCode::OK,
            }
        }
    })
    .await;
    let answers = send_copies(slice::from_ref(&app.router), 20, || github("a", "{}")).await;
    assert_eq!(count(&answers, "failed"), 2);
    assert_eq!(count(&answers, "processed"), 1);
    assert_eq!(count(&answers, "duplicate"), 17);
    assert_eq!(app.runs(), 3);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_waiters_hold_no_connection() {
    let (mut gate, slow) = gated();
    let app = TestApp::github(async move |tx: DedupeTx, delivery: Delivery| {
        match delivery.id().as_str() {
            "slow" => Ok(slow(tx, delivery).await),
            _ => write_effect(tx, delivery).await.map(|_| StatusCode::OK),
        }
    })
    .await;
    let routers = [app.router.clone()];
    let storm =
        tokio::spawn(async move { send_copies(&routers, 200, || github("slow", "{}")).await });
    gate.reached().await;
    // The pool has five connections. If the waiting copies held them, these deliveries would starve.
    for id in 0..50 {
        let other = app.send(github(&id.to_string(), "{}")).await;
        assert_eq!(other, answer(200, "processed", ""));
    }
    app.database.until(ONE_IN_TRANSACTION).await;
    gate.open();
    let answers = storm.await.unwrap();
    assert_eq!(count(&answers, "processed"), 1);
    assert_eq!(count(&answers, "duplicate"), 199);
    assert_rows!(app.database, claims: 51, effects: 51);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_a_delivery_in_flight_elsewhere_is_waited_for_within_bounds() {
    let (mut gate, slow) = gated();
    let app = TestApp::github_with(
        |layer| layer.in_flight_timeout(Duration::from_millis(200)),
        write_effect,
    )
    .await;
    let elsewhere = app.elsewhere(slow).await;
    let first = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;

    // A timeout of zero must not mean forever, as it does in Postgres.
    let impatient = app
        .elsewhere_with(
            |layer| layer.in_flight_timeout(Duration::ZERO),
            write_effect,
        )
        .await;
    for router in [&app.router, &impatient] {
        assert_eq!(
            send(router, github("a", "{}")).await,
            answer(503, "in-flight", "in flight, retry later")
        );
    }
    let waiting = spawn_send(&app.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(waiting.await.unwrap(), answer(200, "duplicate", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
    app.settled().await;
}

/// If a copy fails, the next one takes over, and may be slow as well. A copy that waits for all of them has one time
/// limit for the whole wait.
#[tokio::test(flavor = "multi_thread")]
async fn g7_the_wait_is_bounded_as_a_whole_however_many_take_over() {
    const WAIT: Duration = Duration::from_millis(500);
    // All slow copies together take far longer than the wait.
    const TAKING_OVER: u32 = 6;
    let (mut gate, slow) = gated();
    let fails = Arc::new(AtomicBool::new(true));
    let handler = {
        let fails = fails.clone();
        async move |tx: DedupeTx, delivery: Delivery| {
            let status = slow(tx, delivery).await;
            match fails.load(Ordering::Relaxed) {
                true => StatusCode::INTERNAL_SERVER_ERROR,
                false => status,
            }
        }
    };
    let app = TestApp::github(handler.clone()).await;
    let queue = async |length: u32| {
        let waiting = format!(
            "{length} = (
                select count(*) from pg_locks
                join pg_database on pg_database.oid = pg_locks.database
                where not granted and locktype = 'advisory' and datname = current_database()
            )"
        );
        app.database.until(&waiting).await;
    };
    let mut attempts = vec![spawn_send(&app.router, github("a", "{}"))];
    gate.reached().await;
    for length in 1..=TAKING_OVER {
        let elsewhere = app.elsewhere(handler.clone()).await;
        attempts.push(spawn_send(&elsewhere, github("a", "{}")));
        queue(length).await;
    }
    let last = app
        .elsewhere_with(|layer| layer.in_flight_timeout(WAIT), write_effect)
        .await;
    let mut waits = spawn_send(&last, github("a", "{}"));
    queue(TAKING_OVER + 1).await;

    // Whenever most of the last copy's wait has passed, the test makes another attempt fail. If each failure restarted
    // the wait, the last copy would wait until all attempts have failed.
    let answered = loop {
        match tokio::time::timeout(WAIT * 3 / 5, &mut waits).await {
            Ok(answered) => break answered.unwrap(),
            Err(_) => gate.open(),
        }
    };
    assert_eq!(answered, answer(503, "in-flight", "in flight, retry later"));

    fails.store(false, Ordering::Relaxed);
    gate.open();
    let mut answers = Vec::new();
    for attempt in attempts {
        answers.push(attempt.await.unwrap());
    }
    assert_eq!(count(&answers, "processed"), 1, "{answers:?}");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_a_wait_that_the_databases_own_limit_ends_is_in_flight_too() {
    let (mut gate, slow) = gated();
    let app = TestApp::github(slow).await;
    let first = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let name = &app.database.name;
    app.database
        .run(&format!(
            "alter database {name} set statement_timeout = '200ms'"
        ))
        .await;
    let elsewhere = app.elsewhere(write_effect).await;
    assert_eq!(
        send(&elsewhere, github("a", "{}")).await,
        answer(503, "in-flight", "in flight, retry later")
    );
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}
