//! The application is killed with SIGKILL at the moments that matter, and then restarted.
//!
//!     cargo test -p outbox

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use graphile_worker::WorkerUtils;
use outbox::carrier::Carrier;
use outbox::{shipping, stripe, webhook};
use sqlx::{ConnectOptions, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // The test starts this same program again, as the application that it kills.
        ["--application", manner, database, carrier] => run(manner, database, carrier).await,
        ["--list", ..] => {}
        _ => {
            let world = World::new().await;
            before_the_job(&world).await;
            amid_the_job(&world).await;
            before_the_commit(&world).await;
            instead_of_the_commit(&world).await;
        }
    }
}

/// Kills the application after the acknowledgement, before the job has run.
async fn before_the_job(world: &World) {
    // The job waits, as it does while all workers are busy.
    let application = world.start(WITHOUT_WORKER).await;
    assert_eq!(application.deliver("a").await.unwrap(), PROCESSED);
    application.kill().await;
    assert_eq!(world.stored("a").await, Stored { claims: 1, jobs: 1 });
    assert_eq!(world.carrier.keys("a").len(), 0);

    let application = world.start(WHOLE).await;
    world.until_no_job_is_left().await;
    assert_eq!(application.deliver("a").await.unwrap(), DUPLICATE);
    assert_eq!(world.stored("a").await, Stored { claims: 1, jobs: 0 });
    assert_eq!(world.carrier.keys("a").len(), 1);
    assert_eq!(world.carrier.shipments("a"), 1);
    application.kill().await;
    println!("killed before the job ran: called once, shipped once");
}

/// Kills the application after the carrier has shipped, but before the carrier has answered, so the
/// job is not done.
async fn amid_the_job(world: &World) {
    world.carrier_is_silent.store(true, Ordering::Relaxed);
    let application = world.start(WHOLE).await;
    assert_eq!(application.deliver("b").await.unwrap(), PROCESSED);
    until("it is shipped", async || world.carrier.shipments("b") == 1).await;
    application.kill().await;
    assert_eq!(world.stored("b").await, Stored { claims: 1, jobs: 1 });
    // The engine still believes that the dead worker is working on the job.
    assert_eq!(world.count(LOCKED).await, 1);

    world.carrier_is_silent.store(false, Ordering::Relaxed);
    let application = world.start(WHOLE).await;
    world.until_no_job_is_left().await;
    let keys = world.carrier.keys("b");
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(world.carrier.shipments("b"), 1);
    application.kill().await;
    println!("killed during the job: called twice with one key, shipped once");
}

/// Kills the application after the handler has enqueued the job, but before the commit.
async fn before_the_commit(world: &World) {
    let mut application = world.start(HANGS_BEFORE_COMMIT).await;
    let address = application.address;
    let sending = tokio::spawn(stripe::deliver(address, "c", "c"));
    assert_eq!(application.says().await, ENQUEUED);
    application.kill().await;
    assert!(sending.await.unwrap().is_err());
    until("it is rolled back", async || {
        world.count(IN_TRANSACTION).await == 0
    })
    .await;
    assert_eq!(world.stored("c").await, Stored { claims: 0, jobs: 0 });

    world.retry_succeeds("c").await;
    println!("killed before the commit: nothing was there; the retry: shipped once");
}

/// The handler enqueues the job, and then answers 500.
async fn instead_of_the_commit(world: &World) {
    let application = world.start(FAILS_AFTER_ALL).await;
    assert_eq!(application.deliver("d").await.unwrap(), FAILED);
    assert_eq!(world.stored("d").await, Stored { claims: 0, jobs: 0 });
    application.kill().await;

    world.retry_succeeds("d").await;
    println!("failed after all: nothing was there; the retry: shipped once");
}

const PROCESSED: &str = "200 processed";
const DUPLICATE: &str = "200 duplicate";
const FAILED: &str = "500 failed";

const LOCKED: &str = "select count(*) from graphile_worker.jobs where locked_by is not null";
const IN_TRANSACTION: &str = "select count(*) from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid() and xact_start is not null";

/// The parts that outlive the application.
struct World {
    postgres: ThrowawayPostgres,
    pool: PgPool,
    carrier: Carrier,
    carrier_address: SocketAddr,
    /// Whether the carrier does its work and then does not answer.
    carrier_is_silent: Arc<AtomicBool>,
}

async fn keep_silent(
    State(is_silent): State<Arc<AtomicBool>>,
    request: Request,
    next: Next,
) -> Response {
    let answer = next.run(request).await;
    if is_silent.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    answer
}

/// The rows in Postgres that belong to one delivery.
#[derive(Debug, PartialEq, Eq)]
struct Stored {
    claims: i64,
    jobs: i64,
}

impl World {
    async fn new() -> Self {
        let postgres = ThrowawayPostgres::start(Durability::Durable)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let pool = PgPool::connect_with(postgres.options("postgres"))
            .await
            .unwrap();
        idempotent_webhook::migrate(&pool).await.unwrap();
        let jobs = WorkerUtils::new(pool.clone(), shipping::SCHEMA);
        jobs.migrate().await.unwrap();

        let carrier = Carrier::default();
        let carrier_is_silent = Arc::new(AtomicBool::new(false));
        let silence = from_fn_with_state(carrier_is_silent.clone(), keep_silent);
        let router = carrier.router().layer(silence);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let carrier_address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, router).into_future());
        Self {
            postgres,
            pool,
            carrier,
            carrier_address,
            carrier_is_silent,
        }
    }

    async fn start(&self, manner: &str) -> Application {
        let database = self.postgres.options("postgres").to_url_lossy();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--application", manner, database.as_str()])
            .arg(format!("http://{}", self.carrier_address))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next_line().await.unwrap().expect("it serves");
        Application {
            child,
            address: address.parse().unwrap(),
            lines,
        }
    }

    async fn retry_succeeds(&self, order: &str) {
        let application = self.start(WHOLE).await;
        assert_eq!(application.deliver(order).await.unwrap(), PROCESSED);
        self.until_no_job_is_left().await;
        assert_eq!(self.stored(order).await, Stored { claims: 1, jobs: 0 });
        assert_eq!(self.carrier.keys(order).len(), 1);
        assert_eq!(self.carrier.shipments(order), 1);
        application.kill().await;
    }

    async fn stored(&self, order: &str) -> Stored {
        let claims = "select count(*) from idempotent_webhook.deliveries where delivery_id = $1";
        // The engine's public view of its jobs does not include the payloads.
        let jobs =
            "select count(*) from graphile_worker._private_jobs where payload->>'order' = $1";
        let [claims, jobs] = [claims, jobs].map(async |sql: &'static str| -> i64 {
            let query = sqlx::query_scalar(sql).bind(order);
            query.fetch_one(&self.pool).await.unwrap()
        });
        Stored {
            claims: claims.await,
            jobs: jobs.await,
        }
    }

    async fn count(&self, sql: &'static str) -> i64 {
        let query = sqlx::query_scalar(sql);
        query.fetch_one(&self.pool).await.unwrap()
    }

    async fn until_no_job_is_left(&self) {
        let left = "select count(*) from graphile_worker.jobs";
        until("no job is left", async || self.count(left).await == 0).await;
    }
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..3000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain until {what}");
}

/// A running process of the application.
struct Application {
    child: Child,
    address: SocketAddr,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Application {
    /// Delivers an event which says that an order is paid.
    async fn deliver(&self, order: &str) -> Result<String, impl std::fmt::Debug> {
        stripe::deliver(self.address, order, order).await
    }

    async fn says(&mut self) -> String {
        self.lines.next_line().await.unwrap().expect("a line")
    }

    /// Sends SIGKILL, and waits until the process is gone.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

// The ways in which the application behaves.
const WHOLE: &str = "whole";
const WITHOUT_WORKER: &str = "without worker";
const HANGS_BEFORE_COMMIT: &str = "hangs before commit";
const FAILS_AFTER_ALL: &str = "fails after all";

/// The application prints this before it hangs.
const ENQUEUED: &str = "enqueued";

/// Runs the application. It serves until it is killed, or until its parent is gone.
async fn run(manner: &str, database: &str, carrier: &str) {
    let pool = PgPool::connect(database).await.unwrap();
    if manner == WHOLE {
        let pool = PgPool::connect(database).await.unwrap();
        let carrier = shipping::Carrier::new(carrier.to_owned()).unwrap();
        let worker = shipping::worker(pool, carrier).await.unwrap();
        tokio::spawn(async move { worker.run().await.unwrap() });
    }
    let jobs = WorkerUtils::new(pool.clone(), shipping::SCHEMA);
    // This middleware is between the layer and the handler, so the transaction is still open.
    let misbehaviour = from_fn_with_state(manner.to_owned(), misbehave);
    let route: MethodRouter = webhook::route(jobs).layer(misbehaviour);
    let route = route.layer(webhook::layer(pool).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let mut parent = tokio::io::stdin();
    tokio::select! {
        served = axum::serve(listener, Router::new().route(webhook::PATH, route)) => served.unwrap(),
        // Standard input is a pipe from the test.
        _ = parent.read_u8() => {}
    }
}

async fn misbehave(State(manner): State<String>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    assert_eq!(answer.status(), StatusCode::OK);
    match manner.as_str() {
        HANGS_BEFORE_COMMIT => {
            println!("{ENQUEUED}");
            std::future::pending().await
        }
        FAILS_AFTER_ALL => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => answer,
    }
}
