//! The dashboard on 10 million processed and a million dead deliveries: how long each page takes, how much a live
//! stream slows down meanwhile, and how fast actions on all dead deliveries are.
//!
//!     cargo bench --bench dashboard [-- --small] [pages | live | bulk]
//!
//! `benches/README.md` says how each figure is obtained.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that fails may panic"
)]

mod browser;
mod bulk;
mod live;
mod pages;

use std::time::Instant;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool};

use throwaway_postgres::{Durability, ThrowawayPostgres};

/// The endpoint with nine of ten dead deliveries.
const LARGE: &str = "large";

#[tokio::main]
async fn main() {
    // cargo itself adds `--bench`.
    let (flags, parts): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .partition(|argument| argument.starts_with("--"));
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let (deliveries, dead) = match flags.iter().any(|flag| flag == "--small") {
        true => (200_000, 20_000),
        false => (10_000_000, 1_000_000),
    };
    let server = ThrowawayPostgres::start(Durability::Durable)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let options = server.options("postgres");
    fill(&options, deliveries, dead).await;
    if wants("pages") {
        pages::run(&options).await;
    }
    if wants("live") {
        live::run(&pool(&options, 10).await).await;
    }
    if wants("bulk") {
        bulk::run(&pool(&options, 10).await).await;
    }
}

async fn pool(options: &PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_with(options.clone())
        .await
        .unwrap()
}

async fn fill(options: &PgConnectOptions, deliveries: u32, dead: u32) {
    let started = Instant::now();
    let pool = pool(options, 1).await;
    idempotent_webhook::migrate(&pool).await.unwrap();
    let sizes = format!("set bench.deliveries = {deliveries}; set bench.dead = {dead}");
    pool.execute(sqlx::raw_sql(AssertSqlSafe(sizes)))
        .await
        .unwrap();
    pool.execute(sqlx::raw_sql(include_str!("fill.sql")))
        .await
        .unwrap();
    pool.execute("vacuum analyze").await.unwrap();
    pool.execute("checkpoint").await.unwrap();
    pool.close().await;
    let seconds = started.elapsed().as_secs_f64();
    println!("{deliveries} deliveries and {dead} dead ones, filled in {seconds:.0} s");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
