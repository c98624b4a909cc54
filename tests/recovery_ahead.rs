//! R6 and R7 for deliveries that recovery takes ahead of a free slot, in a process that handles no
//! requests meanwhile. That is why these tests are not among the others.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

#[path = "../examples/throwaway_postgres/mod.rs"]
mod throwaway_postgres;

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, IdempotentWebhook, Recovery, Secret, migrate, presets,
};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// As many attempts as run at once.
const SLOTS: usize = 2;

/// How many attempts are short at first, so that deliveries are taken ahead.
const QUICK: usize = 10;

struct App {
    server: ThrowawayPostgres,
    /// Of the test itself.
    pool: PgPool,
    handler: Handler,
}

type Answered = Pin<Box<dyn Future<Output = StatusCode> + Send>>;

/// Answers as the test says, at first without delay.
#[derive(Clone)]
struct Handler {
    /// The deliveries whose handler has been called.
    called: Arc<Mutex<Vec<String>>>,
    /// Those that may still answer.
    may_answer: Arc<Semaphore>,
    answers_success: Arc<AtomicBool>,
}

impl Handler {
    fn quick_at_first() -> Self {
        Self {
            called: Arc::default(),
            may_answer: Arc::new(Semaphore::new(QUICK)),
            answers_success: Arc::new(AtomicBool::new(true)),
        }
    }

    fn handler(&self) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
        let this = self.clone();
        move |_: DedupeTx, delivery: Delivery| -> Answered {
            let this = this.clone();
            Box::pin(async move {
                this.called.lock().unwrap().push(delivery.id().to_string());
                this.may_answer.acquire().await.unwrap().forget();
                match this.answers_success.load(Ordering::Relaxed) {
                    true => StatusCode::OK,
                    false => StatusCode::INTERNAL_SERVER_ERROR,
                }
            })
        }
    }

    fn called(&self) -> usize {
        self.called.lock().unwrap().len()
    }
}

impl App {
    async fn new() -> Self {
        let server = ThrowawayPostgres::start(Durability::Lossy)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let pool = PgPool::connect_lazy_with(server.options("postgres"));
        migrate(&pool).await.unwrap();
        Self {
            server,
            pool,
            handler: Handler::quick_at_first(),
        }
    }

    /// As a process has it, with connections of its own.
    fn recovery(&self) -> Recovery {
        let pool = PgPoolOptions::new()
            .max_connections(10)
            .connect_lazy_with(self.server.options("postgres"));
        let github = presets::github(Secret::new("secret").unwrap());
        let layer = IdempotentWebhook::new(pool.clone(), "test", github).keep_failed();
        let router: Router = Router::new().route("/", post(self.handler.handler()).layer(layer));
        Recovery::new(pool, router)
            .concurrency(SLOTS)
            .poll_interval(Duration::from_millis(100))
    }

    async fn run(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        self.pool.execute(sqlx::raw_sql(sql)).await.unwrap();
    }

    /// Deliveries that are due, in the order of their numbers.
    async fn insert_due(&self, numbers: RangeInclusive<i32>) {
        let (first, last) = (numbers.start(), numbers.end());
        self.run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select 'test', n, 'due', 1, now() - interval '1 hour' + n * interval '1 s'
             from generate_series({first}, {last}) as n;
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', n, 1, 'POST', '/', '', '{{}}' from generate_series({first}, {last}) as n"
        ))
        .await;
    }

    async fn count(&self, condition: &str) -> usize {
        let sql =
            format!("select count(*) from idempotent_webhook.kept_deliveries where {condition}");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(&self.pool)
            .await
            .unwrap();
        usize::try_from(count).unwrap()
    }

    async fn until(&self, condition: &str, count: usize) {
        for _ in 0..1000 {
            if self.count(condition).await == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited in vain until there are {count} with {condition}");
    }

    /// Until deliveries are taken that no slot is free for. Returns how many: more are only taken when
    /// there is room for several.
    async fn until_some_are_ahead(&self) -> usize {
        loop {
            let taken = self.count(TAKEN).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            if taken > SLOTS && self.count(TAKEN).await == taken {
                return taken - SLOTS;
            }
        }
    }

    /// Until all slots are in use by attempts that do not end.
    async fn until_all_slots_are_busy(&self, called: usize) {
        while self.handler.called() < called {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.handler.called(), called);
    }
}

const TAKEN: &str = "running_until > now()";
const AS_BEFORE: &str = "attempts = 1 and retries = 0 and running_until is null and state = 'due'";

#[tokio::test(flavor = "multi_thread")]
async fn r7_stopping_gives_back_what_has_not_begun() {
    let app = App::new().await;
    app.insert_due(1..=30).await;
    let recovery = app.recovery().spawn();
    app.until_all_slots_are_busy(QUICK + SLOTS).await;
    app.until_some_are_ahead().await;
    let stopping = tokio::spawn(recovery.stop());
    app.until(TAKEN, SLOTS).await;
    app.handler.may_answer.add_permits(SLOTS);
    stopping.await.unwrap();
    assert_eq!(app.handler.called(), QUICK + SLOTS);
    let left = 30 - QUICK - SLOTS;
    app.until("true", left).await;
    assert_eq!(app.count(AS_BEFORE).await, left);
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_a_killed_process_costs_a_neighbour_at_most_one_attempt() {
    let app = App::new().await;
    app.insert_due(1..=16).await;
    let process = Process::recovering(&app);
    app.until_all_slots_are_busy(QUICK + SLOTS).await;
    let ahead = app.until_some_are_ahead().await;
    process.kill().await;
    assert_eq!(
        app.count("retries = 1 and attempts = 2").await,
        SLOTS + ahead
    );

    // When their leases are over, in a process whose attempts are short at first.
    app.run("update idempotent_webhook.kept_deliveries set running_until = now()")
        .await;
    app.insert_due(-9..=0).await;
    app.handler.may_answer.add_permits(QUICK);
    let process = Process::recovering(&app);
    app.until_all_slots_are_busy(2 * (QUICK + SLOTS)).await;
    // Time enough to take others.
    tokio::time::sleep(Duration::from_millis(300)).await;
    // None of those that may have lost an attempt already is taken ahead.
    assert_eq!(app.count(TAKEN).await, SLOTS);
    process.kill().await;
    let not_begun = "retries = 1 and running_until <= now()";
    assert_eq!(app.count(not_begun).await, ahead);
    assert_eq!(app.count("true").await, SLOTS + ahead);

    app.run("update idempotent_webhook.kept_deliveries set running_until = now()")
        .await;
    app.handler.may_answer.add_permits(SLOTS + ahead);
    let recovery = app.recovery().spawn();
    app.until("true", 0).await;
    recovery.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_pause_holds_back_what_has_not_begun() {
    let app = App::new().await;
    app.insert_due(1..=30).await;
    let recovery = app.recovery().spawn();
    app.until_all_slots_are_busy(QUICK + SLOTS).await;
    app.until_some_are_ahead().await;
    let endpoint = Endpoint::new(app.pool.clone(), "test");
    endpoint.pause().await.unwrap();
    app.handler.may_answer.add_permits(30);
    let left = 30 - QUICK - SLOTS;
    app.until("true", left).await;
    app.until(AS_BEFORE, left).await;
    assert_eq!(app.handler.called(), QUICK + SLOTS);
    endpoint.resume().await.unwrap();
    app.until("true", 0).await;
    recovery.stop().await;
    assert_eq!(app.handler.called(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_failures_in_a_row_hold_back_what_has_not_begun() {
    let app = App::new().await;
    app.insert_due(1..=30).await;
    let hour = Duration::from_secs(60 * 60);
    let recovery = app.recovery().breaker(1, hour).spawn();
    app.until_all_slots_are_busy(QUICK + SLOTS).await;
    app.until_some_are_ahead().await;
    app.handler.answers_success.store(false, Ordering::Relaxed);
    app.handler.may_answer.add_permits(SLOTS);
    // Then there is one probe.
    app.until_all_slots_are_busy(QUICK + SLOTS + 1).await;
    app.until(AS_BEFORE, 30 - QUICK - SLOTS - 1).await;
    app.handler.may_answer.add_permits(30);
    recovery.stop().await;
    assert_eq!(app.handler.called(), QUICK + SLOTS + 1);
    assert_eq!(app.count("retries = 1 and status = 500").await, SLOTS + 1);
}

/// A process that recovers, as far as Postgres can tell.
struct Process(Runtime);

impl Process {
    fn recovering(app: &App) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        app.recovery().spawn();
        Self(runtime)
    }

    /// Nothing is written down any more.
    async fn kill(self) {
        let end = || self.0.shutdown_timeout(Duration::from_secs(10));
        tokio::task::spawn_blocking(end).await.unwrap();
    }
}
