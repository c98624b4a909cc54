//! Guarantee G4: regardless of what a handler does with savepoints, nothing commits outside of the
//! claim's transaction.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use fastrand::Rng;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Savepoint};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Postgres, Transaction};

use crate::support::{
    TestApp, answer, assert_rows, cancelled_after, github, insert_effect, spawn_send,
};

/// Sends a delivery four times to a handler whose attempts must all fail. Asserts that no attempt
/// leaves any row.
async fn assert_leaves_nothing(app: TestApp) {
    for _ in 0..4 {
        let answered = app.send(github("a", "{}")).await;
        assert_eq!(answered, answer(500, "failed", &answered.body));
        app.settled().await;
        assert_rows!(app.database, claims: 0, effects: 0);
    }
    assert_eq!(app.runs(), 4);
}

#[tokio::test]
async fn g4_a_note_after_a_savepoint_within_an_aborted_one_is_not_committed() {
    async fn note(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        let booked = async {
            let mut savepoint = tx.begin().await?;
            let _ = savepoint.execute("select no_such_column").await;
            let within = savepoint.begin().await?;
            within.commit().await
        };
        assert!(booked.await.is_err());
        insert_effect(&mut tx, &delivery).await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    }
    assert_leaves_nothing(TestApp::github(note).await).await;
}

#[tokio::test]
async fn g4_nothing_is_written_after_a_begin_that_was_cancelled() {
    for polls in 0..6 {
        let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
            let _ = cancelled_after(polls, tx.begin()).await;
            insert_effect(&mut tx, &delivery).await.unwrap();
            StatusCode::INTERNAL_SERVER_ERROR
        };
        assert_leaves_nothing(TestApp::github(handler).await).await;
    }
}

#[tokio::test]
async fn g4_nothing_is_written_after_a_second_level_that_was_cancelled_behind_a_statement() {
    for polls in 0..6 {
        let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
            let mut savepoint = tx.begin().await.unwrap();
            let slow = savepoint.execute("select pg_sleep(0.01)");
            assert!(cancelled_after(2, slow).await.is_none());
            let _ = cancelled_after(polls, savepoint.begin()).await;
            drop(savepoint);
            insert_effect(&mut tx, &delivery).await.unwrap();
            StatusCode::INTERNAL_SERVER_ERROR
        };
        assert_leaves_nothing(TestApp::github(handler).await).await;
    }
}

/// If sqlx's own methods on `&mut *tx` fail to make a savepoint, sqlx gives up the transaction, and
/// the layer refuses further statements.
#[tokio::test]
async fn g4_nothing_is_written_after_sqlxs_own_begin_has_failed() {
    type Failing = for<'t> fn(&'t mut DedupeTx) -> Pin<Box<dyn Future<Output = bool> + Send + 't>>;
    let ways: [Failing; 4] = [
        |tx| Box::pin(async { Connection::begin(&mut **tx).await.is_err() }),
        |tx| Box::pin(async { Connection::begin_with(&mut **tx, "begin").await.is_err() }),
        |tx| {
            Box::pin(async {
                let nothing = Connection::transaction(&mut **tx, |_| {
                    Box::pin(async { Ok::<_, sqlx::Error>(()) })
                });
                nothing.await.is_err()
            })
        },
        |tx| Box::pin(async { sqlx::Acquire::begin(&mut **tx).await.is_err() }),
    ];
    for fails in ways {
        let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
            let _ = tx.execute("select no_such_column").await;
            assert!(fails(&mut tx).await);
            insert_effect(&mut tx, &delivery).await.unwrap();
            StatusCode::OK
        };
        assert_leaves_nothing(TestApp::github(handler).await).await;
    }
}

#[tokio::test]
async fn g4_a_savepoint_that_is_gone_neither_commits_nor_rolls_back_the_transaction() {
    for commits in [true, false] {
        let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await.unwrap();
            let mut savepoint = tx.begin().await.unwrap();
            // This `begin` fails, and sqlx gives up the savepoint's level.
            assert!(
                Connection::begin_with(&mut *savepoint, "begin")
                    .await
                    .is_err()
            );
            match commits {
                true => savepoint.commit().await.unwrap(),
                false => savepoint.rollback().await.unwrap(),
            }
            StatusCode::OK
        };
        assert_leaves_nothing(TestApp::github(handler).await).await;
    }
}

#[tokio::test]
async fn g4_dropping_a_savepoint_that_is_gone_does_not_roll_back_the_transaction() {
    async fn handler(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let mut savepoint = tx.begin().await.unwrap();
        // Rolls back the savepoint, and gives up its level.
        assert!(
            Connection::begin_with(&mut *savepoint, "begin")
                .await
                .is_err()
        );
        drop(savepoint);
        StatusCode::OK
    }
    let app = TestApp::github(handler).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn begin_with_costs_nothing_where_it_is_called_as_a_method() {
    async fn handler(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        assert!(tx.begin_with("begin").await.is_err());
        let mut savepoint = tx.begin().await.unwrap();
        assert!(savepoint.begin_with("begin").await.is_err());
        insert_effect(&mut savepoint, &delivery).await;
        savepoint.commit().await.unwrap();
        StatusCode::OK
    }
    async fn insert_effect(connection: &mut PgConnection, delivery: &Delivery) {
        sqlx::query("insert into effects values ($1)")
            .bind(delivery.id().as_str())
            .execute(connection)
            .await
            .unwrap();
    }
    let app = TestApp::github(handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn work_in_a_savepoint_is_kept_or_undone_by_what_it_returns() {
    async fn handler(mut tx: DedupeTx) -> Result<StatusCode, StatusCode> {
        let insert = |name: &'static str| sqlx::query("insert into effects values ($1)").bind(name);
        let kept = tx.transaction(|savepoint| {
            Box::pin(async move {
                insert("kept").execute(&mut **savepoint).await?;
                let undone = savepoint.transaction(|within| {
                    Box::pin(async move {
                        insert("undone").execute(&mut **within).await?;
                        within.execute("select no_such_column").await
                    })
                });
                assert!(undone.await.is_err());
                Ok::<_, sqlx::Error>("kept")
            })
        });
        assert_eq!(kept.await.unwrap(), "kept");
        insert("last").execute(&mut *tx).await.unwrap();
        Ok(StatusCode::OK)
    }
    let app = TestApp::github(handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let effects: Vec<String> = sqlx::query_scalar("select delivery_id from effects order by 1")
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(effects, ["kept", "last"]);
}

/// Something that runs statements and in which savepoints can be made.
trait Level: Send {
    fn connection(&mut self) -> &mut PgConnection;
    fn begin(&mut self) -> impl Future<Output = sqlx::Result<Savepoint<'_>>> + Send;
}

impl Level for DedupeTx {
    fn connection(&mut self) -> &mut PgConnection {
        self
    }
    fn begin(&mut self) -> impl Future<Output = sqlx::Result<Savepoint<'_>>> + Send {
        DedupeTx::begin(self)
    }
}

impl Level for Savepoint<'_> {
    fn connection(&mut self) -> &mut PgConnection {
        self
    }
    fn begin(&mut self) -> impl Future<Output = sqlx::Result<Savepoint<'_>>> + Send {
        Savepoint::begin(self)
    }
}

/// What a random handler has written, as far as the handler can know.
#[derive(Default)]
struct Written {
    /// Writes that are committed if the delivery is processed.
    surely: Vec<String>,
    /// Writes that were cancelled on the way, so they may or may not be committed.
    perhaps: Vec<String>,
}

struct Program {
    random: Rng,
    attempt: u32,
    writes: u32,
}

impl Program {
    /// Cancels a future at one of its first polls, in a third of the cases.
    async fn perhaps<F: Future>(&mut self, future: F) -> Option<F::Output> {
        match self.random.u32(..3) {
            0 => cancelled_after(self.random.u32(0..5), future).await,
            _ => Some(future.await),
        }
    }

    async fn write(&mut self, connection: &mut PgConnection, written: &mut Written) {
        self.writes += 1;
        let what = format!("{}/{}", self.attempt, self.writes);
        let insert = sqlx::query("insert into effects values ($1)").bind(&what);
        match self.perhaps(insert.execute(connection)).await {
            Some(Ok(_)) => written.surely.push(what),
            Some(Err(_)) => {}
            None => written.perhaps.push(what),
        }
    }

    /// Does random work in a level, and in levels within it.
    fn run<'p>(
        &'p mut self,
        level: &'p mut impl Level,
        levels: u32,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'p>> {
        Box::pin(async move {
            let mut written = Written::default();
            for _ in 0..self.random.u32(1..5) {
                match self.random.u32(..10) {
                    0..4 => self.write(level.connection(), &mut written).await,
                    4 => {
                        let fails = level.connection().execute("select no_such_column");
                        let _ = self.perhaps(fails).await;
                    }
                    5 => {
                        let slow = level.connection().execute("select pg_sleep(0.001)");
                        let _ = self.perhaps(slow).await;
                    }
                    6 => self.sqlxs_own(level.connection(), &mut written).await,
                    _ if levels > 0 => {
                        let Some(Ok(mut savepoint)) = self.perhaps(level.begin()).await else {
                            continue;
                        };
                        let within = self.run(&mut savepoint, levels - 1).await;
                        let kept = match self.random.u32(..4) {
                            0 => false,
                            1 => {
                                let _ = self.perhaps(savepoint.rollback()).await;
                                false
                            }
                            _ => matches!(self.perhaps(savepoint.commit()).await, Some(Ok(()))),
                        };
                        if kept {
                            written.surely.extend(within.surely);
                            written.perhaps.extend(within.perhaps);
                        }
                    }
                    _ => {}
                }
            }
            written
        })
    }

    /// Makes a savepoint with sqlx's own method, as a function that takes a connection may do. If
    /// that fails, returns the error.
    async fn sqlxs_own(&mut self, connection: &mut PgConnection, written: &mut Written) {
        let begun: Option<sqlx::Result<Transaction<'_, Postgres>>> =
            self.perhaps(Connection::begin(connection)).await;
        let Some(Ok(mut savepoint)) = begun else {
            return;
        };
        let mut within = Written::default();
        self.write(&mut savepoint, &mut within).await;
        if self.random.bool() && savepoint.commit().await.is_ok() {
            written.surely.extend(within.surely);
            written.perhaps.extend(within.perhaps);
        }
    }
}

/// Random savepoints, failures, and cancellations at any poll. `SAVEPOINT_CASES` sets the number of
/// cases.
#[tokio::test]
async fn g4_random_handlers_leave_what_was_acknowledged_and_nothing_else() {
    let cases = std::env::var("SAVEPOINT_CASES").map_or(500, |cases| cases.parse().unwrap());
    let attempts = AtomicU32::new(0);
    let last: Arc<Mutex<Written>> = Arc::default();
    let handler = {
        let last = last.clone();
        let attempts = Arc::new(attempts);
        async move |mut tx: DedupeTx, seed: Bytes| {
            let mut program = Program {
                random: Rng::with_seed(
                    u64::from_str_radix(str::from_utf8(&seed).unwrap(), 16).unwrap(),
                ),
                attempt: attempts.fetch_add(1, Ordering::Relaxed),
                writes: 0,
            };
            let written = program.run(&mut tx, 3).await;
            *last.lock().unwrap() = written;
            match program.random.u32(..3) {
                0 => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::OK,
            }
        }
    };
    let app = TestApp::github(handler).await;
    let mut processed = 0;
    for case in 0..cases {
        let seed = format!("{:x}", fastrand::u64(..));
        *last.lock().unwrap() = Written::default();
        let answered = app.send(github(&case.to_string(), seed.clone())).await;
        let effects: HashSet<String> = sqlx::query_scalar("select delivery_id from effects")
            .fetch_all(&app.database.pool)
            .await
            .unwrap()
            .into_iter()
            .collect();
        let written = std::mem::take(&mut *last.lock().unwrap());
        let claims = sqlx::query_scalar::<_, i64>(AssertSqlSafe(format!(
            "select count(*) from idempotent_webhook.deliveries where delivery_id = '{case}'"
        )))
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
        if answered.outcome == "processed" {
            processed += 1;
            let surely: HashSet<String> = written.surely.into_iter().collect();
            assert_eq!(claims, 1, "seed {seed}");
            assert!(
                effects.is_superset(&surely),
                "seed {seed}: {effects:?} {surely:?}"
            );
            let unexplained = effects
                .iter()
                .filter(|effect| !surely.contains(*effect) && !written.perhaps.contains(effect));
            assert_eq!(
                unexplained.count(),
                0,
                "seed {seed}: {effects:?} {surely:?}"
            );
        } else {
            assert_eq!((claims, effects.len()), (0, 0), "seed {seed}: {effects:?}");
        }
        app.database.run("truncate effects").await;
    }
    // Both outcomes occur often enough to be meaningful.
    assert!(
        (cases / 10..cases).contains(&processed),
        "{processed} of {cases}"
    );
}

/// How a handler may lose step with Postgres: sqlx does not read everything that Postgres answers
/// to a COPY that fails or is interrupted.
#[derive(Clone, Copy)]
enum Copy {
    BrokenOff,
    Fails,
}

async fn lose_step(tx: &mut DedupeTx, how: Copy) {
    let mut savepoint = tx.begin().await.unwrap();
    match how {
        Copy::BrokenOff => {
            let copy = savepoint.copy_in_raw("copy effects from stdin");
            drop(copy.await.unwrap());
            drop(savepoint);
        }
        Copy::Fails => {
            let copy = savepoint.copy_out_raw("copy no_such_table to stdout");
            assert!(copy.await.is_err());
            savepoint.rollback().await.unwrap();
        }
    }
}

/// Asserts that no connection of the pool takes the answers to one statement for the answers to
/// another.
async fn assert_in_step(app: &TestApp) {
    let mut connections = Vec::new();
    for _ in 0..5 {
        let mut connection = app.database.pool.acquire().await.unwrap();
        for number in [41, 42, 43] {
            let returned: i32 = sqlx::query_scalar("select $1 + 0")
                .bind(number)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            assert_eq!(returned, number);
        }
        connections.push(connection);
    }
}

/// Allows for requests that wait for the pool on a busy machine.
fn patient(layer: IdempotentWebhook) -> IdempotentWebhook {
    layer.database_timeout(Duration::from_secs(20))
}

/// Makes each connection of the pool prepare the statements of the handler and the layer.
async fn warm(app: &TestApp) {
    let sent: Vec<_> = (0..40)
        .map(|n| spawn_send(&app.router, github(&format!("warm-{n}"), "{}")))
        .collect();
    for sent in sent {
        assert_eq!(sent.await.unwrap().status, 200);
    }
    app.settled().await;
}

#[tokio::test]
async fn g5_what_is_out_of_step_is_not_acknowledged_and_does_not_get_back_to_the_pool() {
    for how in [Copy::BrokenOff, Copy::Fails] {
        for status in [StatusCode::OK, StatusCode::BAD_GATEWAY] {
            let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
                insert_effect(&mut tx, &delivery).await.unwrap();
                let is_warming = delivery.id().as_str().starts_with("warm");
                if is_warming {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                } else {
                    lose_step(&mut tx, how).await;
                }
                // Each of these statements returns a row. The layer must not mistake it for the
                // answer to its own query.
                let prepared = sqlx::query("select current_user::text");
                let _ = prepared.fetch_optional(&mut *tx).await;
                let simple = sqlx::raw_sql("select current_user::text");
                let _ = simple.fetch_optional(&mut *tx).await;
                if is_warming { StatusCode::OK } else { status }
            };
            let app = TestApp::github_with(patient, handler).await;
            warm(&app).await;
            for _ in 0..3 {
                let answered = app.send(github("a", "{}")).await;
                assert_eq!(answered.outcome, "failed");
            }
            app.settled().await;
            assert_rows!(app.database, claims: 40, effects: 40);
            assert_in_step(&app).await;
        }
    }
}

/// Before it commits, the layer asks Postgres for the transaction's id. The handler's last
/// statement returns the same id, and the connection is out of step. The layer must not mistake the
/// handler's answer for its own, because the commit fails.
#[tokio::test]
async fn g5_an_answer_that_the_handler_asked_for_is_not_taken_for_the_layers() {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let is_warming = delivery.id().as_str().starts_with("warm");
        if is_warming {
            tokio::time::sleep(Duration::from_millis(20)).await;
        } else {
            lose_step(&mut tx, Copy::Fails).await;
        }
        sqlx::query("insert into child values ($1) returning pg_current_xact_id()::text")
            .bind(if is_warming { 1 } else { 2 })
            .execute(&mut *tx)
            .await
            .unwrap();
        StatusCode::OK
    };
    let app = TestApp::github_with(patient, handler).await;
    app.database
        .run(
            "create table parent (id int primary key);
             insert into parent values (1);
             create table child (id int references parent deferrable initially deferred)",
        )
        .await;
    warm(&app).await;
    for _ in 0..3 {
        assert_eq!(app.send(github("a", "{}")).await.outcome, "failed");
    }
    app.settled().await;
    assert_rows!(app.database, claims: 40, effects: 40);
    assert_in_step(&app).await;
}
