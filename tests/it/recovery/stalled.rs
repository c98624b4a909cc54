//! Guarantee Handle 2: if a background loop has stopped while its process lives, this is reported as a problem.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::Problem;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, presets};

use crate::support::{Database, assert_rows, insert_effect, keep, recovery, secret, soon};

/// The time limit for finding the problem. It covers the longest attempt with the limits of this test, plus the delay
/// that a loop may have: together less than a minute.
const FOUND_WITHIN: Duration = Duration::from_secs(100);

const SHORT: Duration = Duration::from_millis(200);

/// Ends the blocking handler when the test ends, even if it fails.
struct Unblocks(Arc<AtomicBool>);

impl Drop for Unblocks {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handle_2_a_loop_that_has_stopped_while_its_process_lives_is_a_problem() {
    let database = Database::new().await;
    database.insert_due(2).await;
    let is_blocked = Arc::new(AtomicBool::new(true));
    let blocks = is_blocked.clone();
    // The handler blocks its thread, so no time limit can end it.
    let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
        // The blocked worker may be the one that waits for sockets and timers for the whole runtime. Two new tasks make
        // Tokio wake another worker, which takes over that wait.
        for _ in 0..2 {
            tokio::spawn(async {});
        }
        while blocks.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The blocked attempt's transaction has timed out by now, so its insert fails.
        match insert_effect(&mut tx, &delivery).await {
            Ok(()) => StatusCode::OK,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    };
    // When the runtime shuts down, it waits for its threads, so the handler must stop blocking.
    let _unblocks = Unblocks(is_blocked.clone());
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = told.clone();
    let recovery = recovery(&database.pool)
        .concurrency(1)
        .on_change(move |change| {
            let change = (change.problem, change.subject.clone(), change.is_over);
            hook.lock().unwrap().push(change);
        });
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .handler_timeout(SHORT)
        .in_flight_timeout(SHORT)
        .database_timeout(SHORT * 5)
        .keep(keep(&recovery));
    let router = Router::new().route("/", post(handler).layer(layer));
    let task = recovery.spawn(router);

    let has_told = async |number: usize| {
        let told_enough = async {
            while told.lock().unwrap().len() < number {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(FOUND_WITHIN, told_enough)
            .await
            .unwrap();
    };
    has_told(1).await;
    let recovery = Some("recovery".to_owned());
    let begun = (Problem::Stalled, recovery.clone(), false);
    assert_eq!(*told.lock().unwrap(), std::slice::from_ref(&begun));
    // The process of the stalled loop keeps reporting that it serves its endpoint.
    let lives = "select count(*) from idempotent_webhook.kept_endpoints
         where served_at > now() - interval '1 minute'";
    assert_eq!(database.count(lives).await, 1);
    assert_rows!(database, claims: 0, effects: 0);

    is_blocked.store(false, Ordering::Relaxed);
    database
        .until("(select count(*) = 2 from idempotent_webhook.deliveries)")
        .await;
    database
        .run("update idempotent_webhook.kept_endpoints set stalled_at = now() - interval '91 seconds'")
        .await;
    has_told(2).await;
    assert_eq!(
        *told.lock().unwrap(),
        [begun, (Problem::Stalled, recovery, true)]
    );
    assert!(soon(task.stop()).await.is_empty());
    assert_rows!(database, claims: 2, effects: 2);
}
