//! Helpers for the examples: each example gets its own database, sends deliveries to a router, and
//! prints and checks the result of each step.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use idempotent_webhook::testing::TestDelivery;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tower::ServiceExt;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Runs an example on a new database that has the crate's tables, and drops the database at the
/// end.
///
/// The database is created on the server of `DATABASE_URL` if that is set, and otherwise on a
/// server that is started for it.
pub async fn run<F>(example: impl FnOnce(PgPool) -> F) -> ExitCode
where
    F: Future<Output = Result<()>>,
{
    match on_a_new_database(example).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn on_a_new_database<F>(example: impl FnOnce(PgPool) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    // If the server was started for the example, it is stopped when this function returns.
    let (options, _server) = server().await?;
    let mut admin = options.connect().await?;
    let name = format!("webhook_example_{:016x}", fastrand::u64(..));
    execute(&mut admin, format!("create database {name}"))
        .await
        .map_err(|error| format!("No database could be made for the example: {error}"))?;

    let pool = PgPool::connect_lazy_with(options.database(&name));
    let work = async {
        idempotent_webhook::migrate(&pool).await?;
        example(pool.clone()).await
    };
    let result = tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    pool.close().await;
    let dropped = execute(&mut admin, format!("drop database {name} with (force)")).await;
    result.and(dropped.map_err(Into::into))
}

async fn server() -> Result<(PgConnectOptions, Option<ThrowawayPostgres>)> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        return Ok((url.parse()?, None));
    }
    let server = ThrowawayPostgres::start(Durability::Durable).await?;
    Ok((server.options("postgres"), Some(server)))
}

async fn execute(connection: &mut PgConnection, sql: String) -> sqlx::Result<()> {
    connection.execute(AssertSqlSafe(sql)).await.map(drop)
}

/// The answer that a sender gets.
#[derive(PartialEq, Eq)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Shows the status, the outcome, and the body if there is one.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.headers.get("x-webhook-outcome");
        let outcome = outcome.and_then(|outcome| outcome.to_str().ok());
        write!(f, "{} {}", self.status.as_u16(), outcome.unwrap_or("-"))?;
        if !self.body.is_empty() {
            write!(f, ": {}", String::from_utf8_lossy(&self.body))?;
        }
        Ok(())
    }
}

/// Sends a delivery as its provider does. A second call is a retry.
pub async fn send(app: &Router, delivery: &TestDelivery) -> Result<Answer> {
    let (head, body) = app
        .clone()
        .oneshot(delivery.request::<Body>())
        .await?
        .into_parts();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: axum::body::to_bytes(body, usize::MAX).await?,
    })
}

/// Prints the result of a step. An unexpected result is an error.
pub fn step(what: &str, came: impl fmt::Display, expected: &str) -> Result<()> {
    let came = came.to_string();
    println!("  {what:<54} {came}");
    if came == expected {
        Ok(())
    } else {
        Err(format!("That should have been: {expected}").into())
    }
}
