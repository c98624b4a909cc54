//! A payment arrives twice, and one parcel leaves.
//!
//!     cargo run -p outbox
//!
//! No server has to be running: the example uses `DATABASE_URL` if that is set, and otherwise starts a PostgreSQL
//! server.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use graphile_worker::WorkerUtils;
use outbox::carrier::Carrier;
use outbox::{shipping, stripe, webhook};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::net::TcpListener;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("NOT as expected.");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether everything went as expected.
async fn run() -> Result<bool> {
    // If the example has started a server, it is stopped when this function returns.
    let (options, _server) = database().await?;
    let pool = PgPool::connect_with(options.clone()).await?;
    let jobs = WorkerUtils::new(pool.clone(), shipping::SCHEMA);
    idempotent_webhook::migrate(&pool).await?;
    jobs.migrate().await?;

    let carrier = Carrier::default();
    let carrier_address = serve(carrier.router()).await?;
    let route = webhook::route(jobs).layer(webhook::layer(pool.clone())?);
    let address = serve(Router::new().route(webhook::PATH, route)).await?;

    // Makes an order id that no earlier run has used.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let (event, order) = (format!("evt_{now:x}"), format!("order-{now:x}"));
    let first = stripe::deliver(address, &event, &order).await?;
    let jobs_after_first = jobs_left(&pool).await?;
    println!("a payment:       {first}, jobs waiting: {jobs_after_first}");
    let second = stripe::deliver(address, &event, &order).await?;
    let jobs_after_second = jobs_left(&pool).await?;
    println!("the same again:  {second}, jobs waiting: {jobs_after_second}");

    // Usually, the worker runs all the time, in the application or in a process of its own. In this example, it starts
    // only now, to show that the job waits.
    let client = shipping::Carrier::new(format!("http://{carrier_address}"))?;
    let worker = shipping::worker(PgPool::connect_with(options).await?, client).await?;
    let done = async {
        while jobs_left(&pool).await? > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        worker.request_shutdown();
        Result::Ok(())
    };
    let (worked, done) = tokio::join!(worker.run(), done);
    worked?;
    done?;

    let (keys, shipments) = (carrier.keys(&order), carrier.shipments(&order));
    println!("the worker ran:  the carrier was called with {keys:?}, shipments: {shipments}");
    Ok(first == "200 processed"
        && second == "200 duplicate"
        && (jobs_after_first, jobs_after_second) == (1, 1)
        && (keys.len(), shipments) == (1, 1))
}

/// The database of `DATABASE_URL`, or a new database on a server that is started for it.
async fn database() -> Result<(PgConnectOptions, Option<ThrowawayPostgres>)> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        return Ok((url.parse()?, None));
    }
    let server = ThrowawayPostgres::start(Durability::Durable).await?;
    Ok((server.options("postgres"), Some(server)))
}

async fn serve(router: Router) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

async fn jobs_left(pool: &PgPool) -> sqlx::Result<i64> {
    sqlx::query_scalar("select count(*) from graphile_worker.jobs where task_identifier = 'ship'")
        .fetch_one(pool)
        .await
}
