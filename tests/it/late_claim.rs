//! Work before the transaction: `late_claim`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Discarded, Reprocessed};
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{
    BeginError, Delivery, HandlerError, IdempotentWebhook, Keep, LateClaim, Recency, Recovery,
    Source, presets,
};
use serde::Deserialize;
use sqlx::{Executor, PgPool};
use tokio::sync::oneshot;

use crate::support::{
    Database, NO_ADVISORY_LOCK, NONE_TAKEN, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, TestApp, Way,
    answer, assert_kept, assert_rows, cancelled_after, endpoint, failing_behind_gate, gate, gated,
    github, github_delivery, insert_effect, keep, keep_accepted, keep_all, logged, recover,
    recovery, secret, send, send_copies, soon, spawn_send, write_effect,
};

fn late(layer: IdempotentWebhook) -> IdempotentWebhook {
    layer.late_claim().database_timeout(Duration::from_secs(20))
}

/// Claims the delivery, and writes one effect.
pub async fn begin_and_write(
    claim: LateClaim,
    delivery: Delivery,
) -> Result<&'static str, HandlerError> {
    let mut tx = claim.begin().await?;
    insert_effect(&mut tx, &delivery).await?;
    Ok("done")
}

/// A process that keeps all deliveries, and shares nothing with others but the database.
fn process_of<H, T>(pool: PgPool, handler: H) -> (Router, Recovery)
where
    H: Handler<T, ()>,
    T: 'static,
{
    let recovery = recovery(&pool);
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
    let layer = late(layer).keep(keep_all(&recovery));
    (
        Router::new().route("/", post(handler).layer(layer)),
        recovery,
    )
}

type Written = Pin<Box<dyn Future<Output = Result<&'static str, HandlerError>> + Send>>;

/// A handler that waits at the gate before its claim. Until it claims, the attempt holds no lock.
pub fn gated_late(
    way: Way,
) -> impl Fn(LateClaim, Delivery) -> Written + Clone + Send + Sync + 'static {
    move |claim, delivery| {
        let way = way.clone();
        Box::pin(async move {
            way.pass().await;
            begin_and_write(claim, delivery).await
        })
    }
}

#[tokio::test]
async fn l1_a_handler_begins_and_writes_once() {
    let app = TestApp::github_with(late, begin_and_write).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "done")
    );
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_idempotent(&app.router, &github_delivery().id("b"), || async {
        app.database.rows().await.effects
    })
    .await;
}

/// Handlers that wait for an API before they call `begin` leave the pool to other deliveries.
#[tokio::test]
async fn l1_no_connection_is_held_before_begin() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let (mut gate, way) = gate();
    let layer =
        |endpoint| IdempotentWebhook::new(pool.clone(), endpoint, presets::github(secret()));
    let router: Router = Router::new()
        .route("/late", post(gated_late(way)).layer(late(layer("late"))))
        .route("/", post(write_effect).layer(layer("test")));
    let waiting: Vec<_> = (0..50)
        .map(|n| {
            spawn_send(
                &router,
                github_delivery().id(n.to_string()).uri("/late").request(),
            )
        })
        .collect();
    for _ in 0..50 {
        gate.reached().await;
    }
    assert_eq!(database.in_transaction().await, 0);
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(200, "processed", "done")
    );
    for _ in 0..50 {
        gate.open();
    }
    for sent in waiting {
        assert_eq!(sent.await.unwrap(), answer(200, "processed", "done"));
    }
    assert_rows!(database, claims: 51, effects: 51);
}

#[tokio::test]
async fn l1_copies_in_one_process_wait_and_copies_elsewhere_lose_their_begin() {
    let (mut gate, way) = gate();
    let app = TestApp::github_with(late, gated_late(way.clone())).await;
    let elsewhere = app.elsewhere_with(late, gated_late(way)).await;
    let here = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let copy = spawn_send(&app.router, github("a", "{}"));
    let there = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;
    assert_eq!(app.runs(), 2);
    gate.open();
    gate.open();
    let mut answers = [here.await.unwrap(), there.await.unwrap()];
    answers.sort_unstable_by_key(|answer| answer.outcome.clone());
    assert_eq!(
        answers,
        [
            answer(200, "duplicate", ""),
            answer(200, "processed", "done")
        ]
    );
    assert_eq!(copy.await.unwrap(), answer(200, "duplicate", ""));
    assert_eq!(app.runs(), 2);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Another attempt has processed the delivery before this handler calls `begin`. The layer answers as for a duplicate,
/// regardless of what the handler answers.
#[tokio::test]
async fn l1_the_layer_answers_for_a_begin_that_was_lost() {
    for handled in [StatusCode::OK, StatusCode::IM_A_TEAPOT] {
        let (mut gate, way) = gate();
        let (told, error) = oneshot::channel();
        let told = Arc::new(std::sync::Mutex::new(Some(told)));
        let handler = move |claim: LateClaim| {
            let (way, told) = (way.clone(), told.clone());
            async move {
                way.pass().await;
                let error = claim.begin().await.unwrap_err();
                told.lock().unwrap().take().unwrap().send(error).unwrap();
                handled
            }
        };
        let app = TestApp::github_with(late, handler).await;
        let sent = spawn_send(&app.router, github("a", "{}"));
        gate.reached().await;
        let elsewhere = app.elsewhere(write_effect).await;
        assert_eq!(
            send(&elsewhere, github("a", "{}")).await,
            answer(200, "processed", "done")
        );
        gate.open();
        assert_eq!(sent.await.unwrap(), answer(200, "duplicate", ""));
        assert_eq!(error.await.unwrap(), BeginError::Duplicate);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test]
async fn l1_a_begin_that_waits_in_vain_is_in_flight() {
    let short = |layer| late(layer).in_flight_timeout(Duration::from_millis(50));
    let app = TestApp::github_with(short, begin_and_write).await;
    let (mut gate, handler) = gated();
    let elsewhere = app.elsewhere(handler).await;
    let there = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;
    let in_flight = answer(503, "in-flight", "in flight, retry later");
    assert_eq!(app.send(github("a", "{}")).await, in_flight);
    gate.open();
    assert_eq!(there.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 2);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn l1_a_success_without_begin_commits_the_claim_alone() {
    let app = TestApp::github_with(late, async |_: LateClaim| "nothing to do").await;
    let log = logged(async {
        let sent = app.send(github("a", "{}")).await;
        assert_eq!(sent, answer(200, "processed", "nothing to do"));
    })
    .await;
    assert!(!log.contains("WARN"), "{log}");
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_rows!(app.database, claims: 1, effects: 0);
}

#[tokio::test]
async fn l1_a_success_that_has_not_taken_the_claim_is_a_warning() {
    let app = TestApp::github_with(late, async || "who writes elsewhere").await;
    let log = logged(async {
        let sent = app.send(github("a", "{}")).await;
        assert_eq!(sent, answer(200, "processed", "who writes elsewhere"));
    })
    .await;
    assert!(log.contains("has not taken DedupeTx"), "{log}");
    assert_rows!(app.database, claims: 1, effects: 0);
}

/// Asserts that the answer reveals nothing to the sender, that the log gives the advice, and that nothing is written.
async fn assert_told(app: TestApp, text: &str) {
    let log = logged(async {
        let sent = app.send(github("a", "{}")).await;
        assert_eq!(sent, answer(500, "failed", "internal error"));
    })
    .await;
    assert!(log.contains(text), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn l1_a_handler_that_takes_a_transaction_before_its_claim_is_told() {
    let app = TestApp::github_with(late, write_effect).await;
    assert_told(app, "take `LateClaim` in place of `DedupeTx`").await;
}

#[tokio::test]
async fn l1_a_handler_that_takes_a_claim_that_the_layer_has_made_is_told() {
    let app = TestApp::github(begin_and_write).await;
    assert_told(app, "take `DedupeTx` in place of `LateClaim`").await;
}

#[tokio::test]
async fn l1_a_claim_is_taken_once() {
    let twice = async |_: LateClaim, _: LateClaim| "never";
    let app = TestApp::github_with(late, twice).await;
    assert_told(app, "taken twice").await;
}

#[tokio::test]
async fn l2_what_fails_before_or_after_begin_leaves_nothing_and_runs_again() {
    for fails_after in [false, true] {
        let runs = Arc::new(AtomicU32::new(0));
        let handler = move |claim: LateClaim, delivery: Delivery| {
            let first = runs.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if first && !fails_after {
                    return Err(HandlerError::new("the API is away"));
                }
                let mut tx = claim.begin().await?;
                insert_effect(&mut tx, &delivery).await?;
                match first {
                    true => Err(HandlerError::new("too late")),
                    false => Ok("done"),
                }
            }
        };
        let app = TestApp::github_with(late, handler).await;
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "failed", ""));
        assert_rows!(app.database, claims: 0, effects: 0);
        assert_eq!(
            app.send(github("a", "{}")).await,
            answer(200, "processed", "done")
        );
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test]
async fn l2_a_swallowed_sql_error_is_not_acknowledged() {
    let handler = async |claim: LateClaim, delivery: Delivery| {
        let mut tx = claim.begin().await?;
        insert_effect(&mut tx, &delivery).await?;
        let _ = sqlx::query("select 1 / 0").execute(&mut *tx).await;
        Ok::<_, HandlerError>("done")
    };
    let app = TestApp::github_with(late, handler).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(500, "failed", "internal error")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn l2_a_transaction_that_outlives_its_handler_is_not_acknowledged() {
    let (keep, kept) = oneshot::channel();
    let keep = Arc::new(std::sync::Mutex::new(Some(keep)));
    let handler = move |claim: LateClaim| {
        let keep = keep.clone();
        async move {
            let tx = claim.begin().await.unwrap();
            let _ = keep.lock().unwrap().take().unwrap().send(tx);
            "done"
        }
    };
    let app = TestApp::github_with(late, handler).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(500, "failed", "internal error")
    );
    drop(kept.await);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// If a task keeps the claim after the handler has returned, the task's writes are lost.
#[tokio::test]
async fn l2_a_claim_that_outlives_its_handler_is_not_acknowledged() {
    let (keep, kept) = oneshot::channel();
    let keep = Arc::new(std::sync::Mutex::new(Some(keep)));
    let handler = move |claim: LateClaim| {
        let _ = keep.lock().unwrap().take().unwrap().send(claim);
        std::future::ready("done")
    };
    let app = TestApp::github_with(late, handler).await;
    let log = logged(async {
        let sent = app.send(github("a", "{}")).await;
        assert_eq!(sent, answer(500, "failed", "internal error"));
    })
    .await;
    assert!(log.contains("LateClaim, outlived the handler"), "{log}");
    let claim = kept.await.unwrap();
    assert_eq!(claim.begin().await.unwrap_err(), BeginError::Over);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The handler's work continues, and a shutdown waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn l2_a_sender_that_hangs_up_before_begin_changes_nothing() {
    let (mut gate, way) = gate();
    let mut layer = None;
    let set = |new| layer.insert(late(new)).clone();
    let app = TestApp::github_with(set, gated_late(way)).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    // A server drops the request like this.
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
    let drained = tokio::spawn(layer.unwrap().drained());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!drained.is_finished());
    gate.open();
    drained.await.unwrap();
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 1);
}

/// The handler waits in `begin` for another attempt, longer than its own time limit. If this counted as a failure of
/// the handler, it would be recorded and kept.
#[tokio::test]
async fn l2_a_wait_in_vain_is_not_a_handler_that_is_too_slow() {
    let set = |layer| late(layer).handler_timeout(Duration::from_millis(500));
    let app = TestApp::github_with(set, begin_and_write).await;
    let (mut gate, handler) = gated();
    let elsewhere = app.elsewhere(handler).await;
    let there = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;
    let in_flight = answer(503, "in-flight", "in flight, retry later");
    assert_eq!(app.send(github("a", "{}")).await, in_flight);
    gate.open();
    assert_eq!(there.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The handler has claimed nothing, so the layer claims the delivery.
#[tokio::test]
async fn l2_a_begin_that_is_cancelled_has_not_claimed() {
    let (mut gate, way) = gate();
    let handler = move |claim: LateClaim| {
        let way = way.clone();
        async move {
            let begun = tokio::time::timeout(Duration::from_millis(50), claim.begin()).await;
            assert!(begun.is_err());
            way.pass().await;
            "done"
        }
    };
    let app = TestApp::github_with(late, handler).await;
    let (mut other_gate, other_handler) = failing_behind_gate();
    let elsewhere = app.elsewhere(other_handler).await;
    let there = spawn_send(&elsewhere, github("a", "{}"));
    other_gate.reached().await;
    let here = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    other_gate.open();
    assert_eq!(there.await.unwrap().status, 502);
    gate.open();
    assert_eq!(here.await.unwrap(), answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 1, effects: 0);
}

/// A cancelled claim releases its locks, and its connection is not used again.
#[tokio::test]
async fn l2_a_begin_that_is_cancelled_at_any_poll_has_not_claimed() {
    #[derive(Deserialize)]
    struct Asked {
        polls: u32,
    }
    let claimed = Arc::new(AtomicU32::new(0));
    let handler = {
        let claimed = claimed.clone();
        move |claim: LateClaim, axum::Json(asked): axum::Json<Asked>| {
            let claimed = claimed.clone();
            async move {
                if let Some(begun) = cancelled_after(asked.polls, claim.begin()).await {
                    begun.unwrap();
                    claimed.fetch_add(1, Ordering::Relaxed);
                }
                "done"
            }
        }
    };
    let set = |layer| {
        late(layer)
            .serialize_by(Source::body_digest())
            .in_flight_timeout(Duration::from_secs(20))
    };
    let app = TestApp::github_with(set, handler).await;
    for number in 0..40 {
        // A claim completes after about five polls, or fewer on a busy machine.
        let polls = number % 8;
        let body = format!(r#"{{"number":{number},"polls":{polls}}}"#);
        let sent = app.send(github(&number.to_string(), body)).await;
        assert_eq!(sent, answer(200, "processed", "done"), "{polls}");
    }
    // Some claims succeeded, and some were cancelled.
    let claimed = claimed.load(Ordering::Relaxed);
    assert!((1..40).contains(&claimed), "{claimed}");
    app.database.until(NO_ADVISORY_LOCK).await;
    assert_rows!(app.database, claims: 40, effects: 0);
}

/// Each attempt repeats the work that the handler does before its claim.
#[tokio::test]
async fn r7_a_begin_that_fails_counts_as_an_attempt() {
    let (mut gate, way) = gate();
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        late(layer)
            .database_timeout(Duration::from_millis(500))
            .in_flight_timeout(Duration::from_millis(500))
            .keep(keep_all(recovery))
    };
    let app = TestApp::recovered(presets::github(secret()), set, gated_late(way)).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let mut held = Vec::new();
    let pool = &app.database.pool;
    for _ in 0..pool.options().get_max_connections() {
        held.push(pool.acquire().await.unwrap());
    }
    gate.open();
    let sent = sent.await.unwrap();
    assert_eq!((sent.status, &*sent.outcome), (503, "kept"));
    drop(held);
    app.database.until(NONE_TAKEN).await;
    app.settled().await;
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 0, effects: 0);

    // A `begin` that fails in a recovery attempt counts as well: after the schedule, the delivery is dead, and does not
    // run forever.
    let pending = app.database.another_pool(1).await;
    let mut holder = pending.begin().await.unwrap();
    holder
        .execute("lock table idempotent_webhook.deliveries in exclusive mode")
        .await
        .unwrap();
    for _ in 0..3 {
        gate.open();
        app.database.make_due().await;
        app.recovery.run_due(&app.router).await.unwrap();
    }
    drop(holder);
    assert_kept!(app.database, "dead", attempts: 4, retries: 3);
    assert_eq!(app.runs(), 4);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn l2_a_body_that_was_processed_under_another_id_does_not_reach_the_handler() {
    let set = |layer| late(layer).replay_guard();
    let app = TestApp::github_with(set, begin_and_write).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "done")
    );
    assert_eq!(
        app.send(github("b", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn l3_what_fails_before_begin_is_kept_and_runs_again() {
    let ways: [fn(&Recovery) -> Keep; 3] = [keep, keep_all, keep_accepted];
    for way in ways {
        let runs = Arc::new(AtomicU32::new(0));
        let handler = move |claim: LateClaim, delivery: Delivery| {
            let first = runs.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if first {
                    return Err(HandlerError::new("the API is away"));
                }
                begin_and_write(claim, delivery).await
            }
        };
        let set = |layer: IdempotentWebhook, recovery: &Recovery| late(layer).keep(way(recovery));
        let app = TestApp::recovered(presets::github(secret()), set, handler).await;
        app.send(github("a", "{}")).await;
        let recovery = recover(&app);
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
        assert_eq!(app.runs(), 2);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// No lock shows that the handler is running. Only the heartbeat of its process does.
#[tokio::test(flavor = "multi_thread")]
async fn l3_a_handler_that_has_not_begun_is_taken_over_only_once_its_process_is_gone() {
    let (mut gate, way) = gate();
    let database = Database::new().await;
    let process = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (router, sent) = {
        let _in_process = process.enter();
        let pool = database.another_pool(3).await;
        let (router, _) = process_of(pool, gated_late(way));
        let sent = spawn_send(&router, github("a", "{}"));
        (router, sent)
    };
    gate.reached().await;
    let (other, recovery) = process_of(database.pool.clone(), begin_and_write);
    let task = recovery.spawn(other);
    // Longer than a process may go without a heartbeat.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_rows!(database, claims: 0, effects: 0);
    process.shutdown_background();
    drop((router, sent));
    soon(database.until(NOTHING_KEPT)).await;
    task.stop().await;
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn l3_an_attempt_whose_delivery_was_taken_over_cannot_begin() {
    let (mut gate, way) = gate();
    let keep_late =
        |layer: IdempotentWebhook, recovery: &Recovery| late(layer).keep(keep_all(recovery));
    let app = TestApp::recovered(presets::github(secret()), keep_late, gated_late(way)).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    app.database
        .run("update idempotent_webhook.kept_deliveries set takes = takes + 1")
        .await;
    gate.open();
    let sent = sent.await.unwrap();
    assert_eq!((sent.status, &*sent.outcome), (503, "kept"));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// An operator erases or discards the delivery while its handler runs, so it is no longer kept. After a 2xx, neither
/// the provider nor recovery would run it again. The layer therefore decides the answer after its last statement.
#[tokio::test]
async fn r14_what_an_operator_changes_in_the_handler_decides_the_answer() {
    #[derive(Clone, Copy, PartialEq)]
    enum Word {
        Erase,
        Discard,
    }
    let ways: [fn(&Recovery) -> Keep; 2] = [keep_all, |recovery| keep_all(recovery).acknowledge()];
    for (acknowledges, way) in ways.into_iter().enumerate() {
        for word in [Word::Erase, Word::Discard] {
            for begins in [false, true] {
                let (mut gate, pass) = gate();
                let handler = move |claim: LateClaim, delivery: Delivery| {
                    let pass = pass.clone();
                    async move {
                        pass.pass().await;
                        match begins {
                            true => begin_and_write(claim, delivery).await,
                            false => Err(HandlerError::new("not yet")),
                        }
                    }
                };
                let set =
                    |layer: IdempotentWebhook, recovery: &Recovery| late(layer).keep(way(recovery));
                let app = TestApp::recovered(presets::github(secret()), set, handler).await;
                let sent = spawn_send(&app.router, github("a", "{}"));
                gate.reached().await;
                let endpoint = endpoint(&app);
                match word {
                    Word::Erase => assert!(endpoint.erase("a").await.unwrap()),
                    Word::Discard => {
                        let discarded = endpoint.discard("a").await.unwrap();
                        assert_eq!(discarded, Discarded::Discarded);
                    }
                }
                gate.open();
                let sent = sent.await.unwrap();
                let failed = if begins { 503 } else { 500 };
                let expected = match (word, acknowledges == 1) {
                    (Word::Discard, true) => (200, "discarded"),
                    _ => (failed, "failed"),
                };
                assert_eq!((sent.status, &*sent.outcome), expected);
                match word {
                    Word::Erase => assert_kept!(app.database, "recorded", attempts: 1, retries: 0),
                    Word::Discard => app.database.until(NOTHING_KEPT).await,
                }
                assert_rows!(app.database, claims: 0, effects: 0);
            }
        }
    }
}

#[tokio::test]
async fn l3_a_copy_of_what_is_reprocessed_knows_of_it() {
    let handler = async |claim: LateClaim, delivery: Delivery| {
        begin_and_write(claim, delivery.clone()).await?;
        Ok::<_, HandlerError>(delivery.is_reprocessed().to_string())
    };
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        late(layer).keep(keep_all(recovery).processed_for(Duration::from_secs(3600)))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let sent = app.send(github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "false"));
    assert_eq!(
        endpoint(&app).reprocess("a").await.unwrap(),
        Reprocessed::Due
    );
    let sent = app.send(github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "true"));
    assert_kept!(app.database, "processed", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 1, effects: 2);
}

/// When the handler asked whether the delivery is being reprocessed, the answer was still no.
#[tokio::test(flavor = "multi_thread")]
async fn l3_an_attempt_that_does_not_know_of_a_reprocess_cannot_begin() {
    let handler = async |claim: LateClaim, delivery: Delivery| {
        begin_and_write(claim, delivery.clone()).await?;
        Ok::<_, HandlerError>(delivery.is_reprocessed().to_string())
    };
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        late(layer).keep(keep_all(recovery).processed_for(Duration::from_secs(3600)))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    for begins in [true, false] {
        let (mut gate, way) = gate();
        let slow = move |claim: LateClaim, delivery: Delivery| {
            let way = way.clone();
            async move {
                way.pass().await;
                match begins {
                    true => begin_and_write(claim, delivery).await.map(drop),
                    false => Ok(()),
                }
            }
        };
        let elsewhere = app.elsewhere_with(late, slow).await;
        let id = format!("begins-{begins}");
        let sent = spawn_send(&elsewhere, github(&id, "{}"));
        gate.reached().await;
        let first = soon(app.send(github(&id, "{}"))).await;
        assert_eq!(first, answer(200, "processed", "false"));
        let reprocessed = soon(endpoint(&app).reprocess(&id)).await.unwrap();
        assert_eq!(reprocessed, Reprocessed::Due);
        let before = app.database.rows().await;
        gate.open();
        assert_eq!(soon(sent).await.unwrap().status, 503);
        assert_eq!(app.database.rows().await, before);
        let again = soon(app.send(github(&id, "{}"))).await;
        assert_eq!(again, answer(200, "processed", "true"));
    }
    assert_rows!(app.database, claims: 2, effects: 4);
}

/// A task still waits in `begin` when the handler returns. If `begin` then succeeded, the transaction would hold the
/// claim for as long as the task keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn l2_a_begin_that_outlives_its_handler_holds_no_claim() {
    let (mut busy, handler) = failing_behind_gate();
    let (mut answering, way) = gate();
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
    let outlived = move |claim: LateClaim, delivery: Delivery| {
        let (way, tell) = (way.clone(), tell.lock().unwrap().take());
        async move {
            let Some(tell) = tell else {
                return begin_and_write(claim, delivery).await;
            };
            tokio::spawn(async move { tell.send(claim.begin().await) });
            way.pass().await;
            Ok("done")
        }
    };
    let set = |layer: IdempotentWebhook| {
        late(layer)
            .max_connections(1)
            .in_flight_timeout(Duration::from_secs(20))
            .handler_timeout(Duration::from_secs(60))
    };
    let app = TestApp::github_with(set, outlived).await;
    let elsewhere = app.elsewhere(handler).await;
    let failing = spawn_send(&elsewhere, github("a", "{}"));
    busy.reached().await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    answering.reached().await;
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    answering.open();
    let outlived = answer(500, "failed", "internal error");
    assert_eq!(sent.await.unwrap(), outlived);
    busy.open();
    assert_eq!(failing.await.unwrap().status, 502);
    let begun = told.await.unwrap();
    assert_eq!(begun.as_ref().unwrap_err(), &BeginError::Over);
    app.database.until(NO_ADVISORY_LOCK).await;
    let sent = app.send(github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The sequence from the guide: fetch, begin, advance.
#[tokio::test]
async fn l2_thin_events_in_any_order_end_at_the_newest_state() {
    #[derive(Deserialize)]
    struct Thin {
        fetched: i64,
    }
    let handler = async |claim: LateClaim, axum::Json(event): axum::Json<Thin>| {
        let mut tx = claim.begin().await?;
        if tx.advance("sub_1", event.fetched).await? != Recency::Older {
            sqlx::query("delete from effects").execute(&mut *tx).await?;
            sqlx::query("insert into effects (delivery_id) values ($1)")
                .bind(event.fetched.to_string())
                .execute(&mut *tx)
                .await?;
        }
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    let app = TestApp::github_with(late, handler).await;
    for (id, fetched) in [("a", 2), ("b", 4), ("c", 1), ("d", 3)] {
        let body = format!(r#"{{"fetched":{fetched}}}"#);
        let sent = app
            .send(github_delivery().id(id).body(body).request())
            .await;
        assert_eq!(sent, answer(200, "processed", ""));
    }
    let state: Vec<String> = sqlx::query_scalar("select delivery_id from effects")
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(state, ["4"]);
    assert_rows!(app.database, claims: 4, effects: 1);
}

/// Handles deliveries of an endpoint of its own with late claims, one at a time for each object, in processes that use
/// these pools.
pub async fn works_on(database: &Database, pools: [PgPool; 2]) {
    let before = database.rows().await;
    let routers = pools.map(|pool| {
        let layer = IdempotentWebhook::new(pool, "late", presets::github(secret()));
        let layer = late(layer)
            .in_flight_timeout(Duration::from_secs(20))
            .serialize_by(Source::json("$.ref".parse().unwrap()));
        Router::new().route("/", post(begin_and_write).layer(layer))
    });
    for round in 0..10 {
        let request = || github(&format!("late-{round}"), r#"{"ref":"main"}"#);
        let answers = send_copies(&routers, 6, request).await;
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        let processed = answers.iter().filter(|a| a.outcome == "processed");
        assert_eq!(processed.count(), 1, "{answers:?}");
    }
    assert_rows!(database, claims: before.claims + 10, effects: before.effects + 10);
}
