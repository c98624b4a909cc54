//! Kept deliveries, and names for conditions on them.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::RecoveryTask;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, Provider, Recovery,
    presets,
};
use sqlx::{AssertSqlSafe, Executor, PgPool, Postgres, Transaction};

use super::database::Database;
use super::request::secret;
use super::test_app::{TestApp, insert_effect};

pub const SOON: Duration = Duration::from_millis(20);

pub const NOTHING_KEPT: &str = "not exists (select from idempotent_webhook.kept_deliveries)
     and not exists (select from idempotent_webhook.kept_requests)";

pub const ONE_DEAD: &str =
    "exists (select from idempotent_webhook.kept_deliveries where state = 'dead')";

pub const ONE_WAITS_FOR_A_LOCK: &str = "exists (
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
)";

/// No session holds or waits for an advisory lock, which is the lock on a claim or an object.
pub const NO_ADVISORY_LOCK: &str = "not exists (
    select from pg_locks
    where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())
)";

/// No process has taken a delivery, so no attempt is under way.
pub const NONE_TAKEN: &str = "not exists (
    select from idempotent_webhook.kept_deliveries where taken_by is not null
)";

/// No attempt at the only delivery is under way, and the next attempt is due later than this time from now.
pub fn due_after(time: &str) -> String {
    format!(
        "exists (
            select from idempotent_webhook.kept_deliveries
            where state = 'due' and taken_by is null and next_attempt_at > now() + interval '{time}'
        )"
    )
}

/// Longer than a process may go without a heartbeat. After that, another process takes over its deliveries.
pub fn longer_than_silence() -> Duration {
    // Includes the heartbeat at which the silence is noticed.
    seconds_of("SILENCE") + seconds_of("INTERVAL")
}

/// [`longer_than_silence`], plus the time until a process replaces its number. A process takes deliveries under a
/// number, and sends heartbeats for it.
pub fn longer_than_a_term_and_silence() -> Duration {
    seconds_of("TERM") + longer_than_silence()
}

/// The value of a constant in the source code of the heartbeats.
fn seconds_of(name: &str) -> Duration {
    let source = include_str!("../../../src/recovery/liveness/mod.rs");
    let begin = format!("const {name}: Duration = Duration::from_secs(");
    let (_, seconds) = source.split_once(&begin).unwrap();
    let (seconds, _) = seconds.split_once(')').unwrap();
    Duration::from_secs(seconds.parse().unwrap())
}

/// A recovery handle with a short poll interval, so that it soon finds deliveries that other processes have kept.
pub fn recovery(pool: &PgPool) -> Recovery {
    Recovery::new(pool.clone())
        .concurrency(2)
        .poll_interval(Duration::from_millis(200))
}

/// Keeps failed deliveries, for four attempts in all.
pub fn keep(recovery: &Recovery) -> Keep {
    Keep::failed(recovery).retry_delays([SOON, SOON, SOON])
}

/// Records failed deliveries, without their requests.
pub fn record(keep: Keep) -> Keep {
    keep.body_limit(0)
}

/// Runs the kept deliveries of the application.
pub fn recover(app: &TestApp) -> RecoveryTask {
    app.recovery.clone().spawn(app.router.clone())
}

/// Runs kept deliveries until none is left.
pub async fn recover_all(app: &TestApp) {
    let recovery = recover(app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
}

pub fn endpoint(app: &TestApp) -> Endpoint {
    Endpoint::new(app.database.pool.clone(), "test")
}

/// Inserts due deliveries with the ids `due-1`, `due-2` and so on, for an endpoint with this route, as if the
/// provider's attempt at each had failed.
pub async fn insert_due_of(database: &Database, endpoint: &str, uri: &str, count: u32) {
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select '{endpoint}', 'due-' || n, 'due', 1, now()
             from generate_series(1, {count}) as n;
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select '{endpoint}', 'due-' || n, 1, 'POST', '{uri}', '', '{{}}'
             from generate_series(1, {count}) as n"
        ))
        .await;
}

/// Locks a table against writes, for as long as the transaction is open.
pub async fn lock(database: &Database, table: &str) -> Transaction<'static, Postgres> {
    let mut tx = database.another_pool(1).await.begin().await.unwrap();
    let lock = format!("lock table idempotent_webhook.{table} in share mode");
    tx.execute(sqlx::raw_sql(AssertSqlSafe(lock)))
        .await
        .unwrap();
    tx
}

/// Terminates this many connections that wait for a lock, one after the other.
pub async fn lose_connections(database: &Database, connections: u32) {
    for _ in 0..connections {
        // A connection that was seen waiting may have got its lock by now.
        let ended: i32 = loop {
            database.until(ONE_WAITS_FOR_A_LOCK).await;
            let ended: Option<(i32, bool)> = sqlx::query_as(
                "select pid, pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock'",
            )
            .fetch_optional(&database.pool)
            .await
            .unwrap();
            if let Some((pid, _)) = ended {
                break pid;
            }
        };
        let is_gone = format!("not exists (select from pg_stat_activity where pid = {ended})");
        database.until(&is_gone).await;
    }
}

/// A process that serves the same endpoint as a [`TestApp`], and shares nothing with it but the database.
pub struct Process {
    pub router: Router,
    pub recovery: Recovery,
}

impl Process {
    /// A process for GitHub's deliveries.
    pub fn new<H, T>(pool: PgPool, way: impl FnOnce(&Recovery) -> Keep, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        Self::of(presets::github(secret()), pool, way, handler)
    }

    pub fn of<H, T>(
        provider: Provider,
        pool: PgPool,
        way: impl FnOnce(&Recovery) -> Keep,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let recovery = recovery(&pool);
        // This limit is far longer than a query takes, even on a busy machine.
        let layer = IdempotentWebhook::new(pool, "test", provider)
            .database_timeout(Duration::from_secs(20))
            .keep(way(&recovery));
        Self {
            router: Router::new().route("/", post(handler).layer(layer)),
            recovery,
        }
    }

    /// Runs the kept deliveries.
    pub fn recover(&self) -> RecoveryTask {
        self.recovery.clone().spawn(self.router.clone())
    }
}

/// The row of a kept delivery.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Kept {
    pub state: String,
    pub attempts: i32,
    /// Scheduled attempts so far.
    pub retries: i32,
}

/// The rows of kept deliveries.
impl Database {
    /// The only kept delivery.
    pub async fn kept(&self) -> Kept {
        sqlx::query_as("select state, attempts, retries from idempotent_webhook.kept_deliveries")
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// Makes all kept deliveries due now.
    pub async fn make_due(&self) {
        self.run("update idempotent_webhook.kept_deliveries set next_attempt_at = now()")
            .await;
    }

    /// Makes all running attempts look as if their processes were gone.
    pub async fn lose_takers(&self) {
        self.run(
            "update idempotent_webhook.kept_deliveries set taken_by = 0 where taken_by is not null",
        )
        .await;
    }

    /// Inserts a process with the number 1. It counts as alive until another process has seen no heartbeat from it for
    /// six seconds.
    pub async fn insert_process(&self) {
        self.run("insert into idempotent_webhook.processes values (1, 1)")
            .await;
    }

    /// Inserts due deliveries of the endpoint of [`TestApp`].
    pub async fn insert_due(&self, count: u32) {
        insert_due_of(self, "test", "/", count).await;
    }
}

/// Asserts the row of the only kept delivery.
macro_rules! assert_kept {
    ($database:expr, $state:literal, attempts: $attempts:expr, retries: $retries:expr) => {
        assert_eq!(
            $database.kept().await,
            $crate::support::Kept {
                state: $state.to_owned(),
                attempts: $attempts,
                retries: $retries,
            }
        )
    };
}
pub(crate) use assert_kept;

pub type Answered = Pin<Box<dyn Future<Output = Result<StatusCode, HandlerError>> + Send>>;

/// A handler that writes one effect and fails a number of times, regardless of the delivery. It notes the attempt
/// number of each run.
#[derive(Clone, Default)]
pub struct Failing {
    left: Arc<AtomicU32>,
    attempts: Arc<Mutex<Vec<u32>>>,
}

impl Failing {
    pub fn times(times: u32) -> Self {
        Self {
            left: Arc::new(times.into()),
            attempts: Arc::default(),
        }
    }

    pub fn handler(
        &self,
    ) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
        let this = self.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let this = this.clone();
            Box::pin(async move {
                this.attempts.lock().unwrap().push(delivery.attempt());
                insert_effect(&mut tx, &delivery).await?;
                let left = |left: u32| left.checked_sub(1);
                match this
                    .left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                {
                    Ok(_) => Err(HandlerError::new("not yet")),
                    Err(_) => Ok(StatusCode::OK),
                }
            })
        }
    }

    /// Fails this many more times.
    pub fn fail_again(&self, times: u32) {
        self.left.store(times, Ordering::Relaxed);
    }

    pub fn attempts(&self) -> Vec<u32> {
        self.attempts.lock().unwrap().clone()
    }
}
