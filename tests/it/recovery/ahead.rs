//! Guarantee Growth 2: recovery takes deliveries *ahead*: before a slot for their handlers is free. No delivery waits
//! longer or loses an attempt because of that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::recovery::Discarded;
use idempotent_webhook::{DedupeTx, Delivery, Keep, Recovery};
use sqlx::Row;

use crate::support::{
    Answered, Database, Gate, NONE_TAKEN, NOTHING_KEPT, SOON, TestApp, Way, answer, assert_rows,
    endpoint, gate, github, insert_effect, keep_accepted, keeping_by, recover, soon,
};

/// Far more than recovery takes ahead before the test sees it.
const DUE: u32 = 1000;

/// The number of deliveries that [`recover`] runs at once.
const SLOTS: i64 = 2;

/// Two deliveries are running. All other deliveries were given back unchanged, so they are due as before.
const ONLY_WHAT_RUNS_IS_TAKEN: &str = "(
    select count(*) = 2 from idempotent_webhook.kept_deliveries where taken_by is not null
) and not exists (
    select from idempotent_webhook.kept_deliveries
    where taken_by is null and (attempts <> 1 or retries <> 0 or next_attempt_at <> '2020-01-01')
) and exists (
    select from idempotent_webhook.kept_deliveries where taken_by is null and takes > 0
)";

/// A handler that writes one effect. Once many deliveries are taken ahead, it waits.
#[derive(Clone)]
struct Waiting {
    way: Way,
    waits: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
    begun: Arc<Mutex<Vec<String>>>,
}

impl Waiting {
    fn new() -> (Gate, Self) {
        let (gate, way) = gate();
        let waiting = Self {
            way,
            waits: Arc::new(AtomicBool::new(true)),
            fails: Arc::default(),
            begun: Arc::default(),
        };
        (gate, waiting)
    }

    fn handler(&self) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
        let this = self.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let this = this.clone();
            Box::pin(async move {
                this.begun.lock().unwrap().push(delivery.id().to_string());
                insert_effect(&mut tx, &delivery).await?;
                let taken: i64 = sqlx::query_scalar(
                    "select count(*) from idempotent_webhook.kept_deliveries
                     where taken_by is not null",
                )
                .fetch_one(&mut *tx)
                .await?;
                if taken > 4 && this.waits.load(Ordering::SeqCst) {
                    this.way.pass().await;
                }
                Ok(match this.fails.load(Ordering::SeqCst) {
                    true => StatusCode::BAD_GATEWAY,
                    false => StatusCode::OK,
                })
            })
        }
    }

    /// Lets all waiting handlers continue.
    fn open(&self, gate: &Gate) {
        self.waits.store(false, Ordering::SeqCst);
        for _ in 0..SLOTS {
            gate.open();
        }
    }
}

async fn insert_due(database: &Database) {
    database.insert_due(DUE).await;
    database
        .run("update idempotent_webhook.kept_deliveries set takes = 0, next_attempt_at = '2020-01-01'")
        .await;
}

/// Waits until each slot has a waiting handler, while more deliveries are taken.
async fn all_wait(gate: &mut Gate) {
    for _ in 0..SLOTS {
        soon(gate.reached()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_2_what_is_taken_ahead_and_gets_no_slot_is_given_back() {
    let (mut gate, waiting) = Waiting::new();
    let app = TestApp::keeping(|keep| keep, waiting.handler()).await;
    insert_due(&app.database).await;
    let task = recover(&app);
    all_wait(&mut gate).await;
    soon(app.database.until(ONLY_WHAT_RUNS_IS_TAKEN)).await;
    waiting.open(&gate);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_eq!(app.runs(), DUE);
    assert_rows!(app.database, claims: 1000, effects: 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_2_a_process_that_stops_gives_back_what_it_has_taken_ahead() {
    let (mut gate, waiting) = Waiting::new();
    let app = TestApp::keeping(|keep| keep, waiting.handler()).await;
    insert_due(&app.database).await;
    let task = recover(&app);
    all_wait(&mut gate).await;
    let stopping = tokio::spawn(task.stop());
    soon(app.database.until(ONLY_WHAT_RUNS_IS_TAKEN)).await;
    let begun = waiting.begun.lock().unwrap().len();
    waiting.open(&gate);
    soon(stopping).await.unwrap();
    app.database.until(NONE_TAKEN).await;
    assert_eq!(waiting.begun.lock().unwrap().len(), begun);
    let next = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    next.stop().await;
    assert_eq!(app.runs(), DUE);
    assert_rows!(app.database, claims: 1000, effects: 1000);
}

/// If the breaker opens, deliveries that were taken ahead must not start, because they would probably fail as well.
#[tokio::test(flavor = "multi_thread")]
async fn growth_2_what_is_taken_ahead_waits_for_the_breaker() {
    let (mut gate, waiting) = Waiting::new();
    let hour = Duration::from_secs(3600);
    let set = |keep: Keep| keep.retry_delays([SOON; 9]).breaker(2, hour);
    let app = TestApp::keeping(set, waiting.handler()).await;
    insert_due(&app.database).await;
    let task = recover(&app);
    all_wait(&mut gate).await;
    waiting.fails.store(true, Ordering::SeqCst);
    waiting.open(&gate);
    let is_open = format!(
        "exists (select from idempotent_webhook.kept_endpoints where probe_at is not null)
         and {NONE_TAKEN}"
    );
    app.database.until(&is_open).await;
    task.stop().await;
    let failed = "select sum(retries)::int8 from idempotent_webhook.kept_deliveries";
    let failed = app.database.count(failed).await;
    // The other slot may have started a delivery by the time the second one failed.
    assert!((2..2 + SLOTS).contains(&failed), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_2_what_is_taken_ahead_and_discarded_does_not_run() {
    let (mut gate, waiting) = Waiting::new();
    let app = TestApp::keeping(|keep| keep, waiting.handler()).await;
    insert_due(&app.database).await;
    let task = recover(&app);
    all_wait(&mut gate).await;
    let ahead = waits_ahead(&app, &waiting).await;
    let discarded = endpoint(&app).discard(&ahead).await.unwrap();
    assert_eq!(discarded, Discarded::Discarded);
    waiting.open(&gate);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert!(!waiting.begun.lock().unwrap().contains(&ahead));
    assert_rows!(app.database, claims: 999, effects: 999);
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_2_what_is_taken_ahead_and_sent_again_runs_once() {
    let (mut gate, waiting) = Waiting::new();
    let set = |recovery: &Recovery| keep_accepted(recovery);
    let app = keeping_by(set, waiting.handler()).await;
    insert_due(&app.database).await;
    let task = recover(&app);
    all_wait(&mut gate).await;
    let ahead = waits_ahead(&app, &waiting).await;
    let sent = app.send(github(&ahead, "{}")).await;
    assert_eq!(sent, answer(200, "accepted", ""));
    waiting.open(&gate);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_rows!(app.database, claims: 1000, effects: 1000);
}

/// The id of a delivery that is taken and has not started.
async fn waits_ahead(app: &TestApp, waiting: &Waiting) -> String {
    let begun = waiting.begun.lock().unwrap().clone();
    sqlx::query_scalar(
        "select delivery_id from idempotent_webhook.kept_deliveries
         where takes > 0 and delivery_id <> all($1)",
    )
    .bind(begun)
    .fetch_one(&app.database.pool)
    .await
    .unwrap()
}

/// A taken delivery: its id, whether its last attempt was unfinished, and the number of attempts.
type TakenRow = (String, bool, i32);

/// Takes deliveries under the number of a process that counts as dead.
async fn take(database: &Database, taken_by: i64) -> Vec<TakenRow> {
    let rows = sqlx::query(include_str!("../../../src/recovery/kept/take.sql"))
        .bind("test")
        .bind(10_i64)
        .bind(None::<f64>)
        .bind(taken_by)
        .bind(false)
        .bind(None::<&str>)
        .fetch_all(&database.pool)
        .await
        .unwrap();
    let mut taken: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.get("delivery_id"),
                row.get("found_unfinished"),
                row.get("attempts"),
            )
        })
        .collect();
    taken.sort();
    taken
}

#[tokio::test]
async fn r6_what_a_killed_process_held_is_taken_one_at_a_time_and_only_then_counts() {
    let database = Database::new().await;
    database.insert_due(3).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set next_attempt_at = now() - interval '1 minute' / right(delivery_id, 1)::int",
        )
        .await;
    let row = |id: &str, found_unfinished, attempts| (id.to_owned(), found_unfinished, attempts);
    // Any of these deliveries may have killed the process, and some have not even started.
    let together = ["due-1", "due-2", "due-3"].map(|id| row(id, false, 2));
    assert_eq!(take(&database, 1).await, together);
    assert_eq!(take(&database, 2).await, [row("due-1", false, 2)]);
    // The delivery was alone in its process.
    assert_eq!(take(&database, 3).await, [row("due-1", true, 3)]);
    database
        .run("delete from idempotent_webhook.kept_deliveries where delivery_id = 'due-1'")
        .await;
    assert_eq!(take(&database, 4).await, [row("due-2", false, 2)]);
    // A delivery with unfinished attempts stays alone.
    database
        .run(
            "update idempotent_webhook.kept_deliveries set taken_by = null;
             update idempotent_webhook.kept_deliveries set unfinished = 1
             where delivery_id = 'due-3'",
        )
        .await;
    assert_eq!(take(&database, 5).await, [row("due-2", false, 3)]);
    database
        .run("delete from idempotent_webhook.kept_deliveries where delivery_id = 'due-2'")
        .await;
    database.insert_due(2).await;
    database
        .run("update idempotent_webhook.kept_deliveries set taken_by = null")
        .await;
    assert_eq!(take(&database, 6).await, [row("due-3", false, 3)]);
}

/// If a process dies, the deliveries that it had only taken ahead lose no attempt. They then run with the same attempt
/// number.
#[tokio::test(flavor = "multi_thread")]
async fn r6_deliveries_that_a_killed_process_had_taken_ahead_lose_no_attempt() {
    let (attempts, handler) = noting_attempts();
    let app = TestApp::keeping(|keep| keep.retry_delays([SOON]), handler).await;
    app.database.insert_due(5).await;
    for _ in 0..3 {
        app.database
            .run(
                "update idempotent_webhook.kept_deliveries
                 set attempts = 2, retries = 1, takes = takes + 1, taken_by = 0,
                     taken_with_others = true",
            )
            .await;
    }
    let task = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_eq!(*attempts.lock().unwrap(), [2; 5]);
    assert_rows!(app.database, claims: 5, effects: 5);
}

type Attempts = Arc<Mutex<Vec<u32>>>;

fn noting_attempts() -> (
    Attempts,
    impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static,
) {
    let attempts = Attempts::default();
    let noted = attempts.clone();
    let handler = move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
        let noted = noted.clone();
        Box::pin(async move {
            noted.lock().unwrap().push(delivery.attempt());
            insert_effect(&mut tx, &delivery).await?;
            Ok(StatusCode::OK)
        })
    };
    (attempts, handler)
}
