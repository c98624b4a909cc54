//! What keeping and recovery cost and how fast they are: acceptance, first attempts, draining, and the
//! live stream beside it.
//!
//!     cargo bench --bench recovery [-- acceptance | first | latency | drain | live] [--network]
//!
//! `benches/README.md` says how each figure is obtained.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that fails may panic"
)]

mod application;
mod backlog;
mod latency;
#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/load.rs"]
mod load;
#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/measure.rs"]
mod measure;
#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/proxy.rs"]
mod proxy;
#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/server.rs"]
mod server;

use std::fmt;
use std::time::Duration;

use idempotent_webhook::Endpoint;
use sqlx::{Executor, PgPool};

use application::{ACCEPT_BY_HAND, ACCEPTED, KEEP_ALL, KEEP_FAILED, LAYER};
use load::Mode;
use measure::median;
use proxy::Proxy;
use server::{Contender, Server};

/// How long one contender is under load in one round.
const SLICE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
/// Of the sender, where it is not said.
const CONNECTIONS: usize = 8;

#[tokio::main]
async fn main() {
    // The benchmark starts this same program as the application and as the sender.
    if application::is_wanted() {
        return application::run().await;
    }
    if load::is_wanted() {
        return load::run().await;
    }

    // cargo itself adds `--bench`.
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench");
    let (options, parts): (Vec<_>, Vec<_>) = arguments
        .iter()
        .partition(|argument| argument.starts_with("--"));
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| *wanted == part);

    let mut server = Server::start().await;
    if options.iter().any(|option| *option == "--network") {
        server.put_behind(&Proxy::start(server.socket()).await.url);
    }
    let pool = PgPool::connect(&server.url()).await.unwrap();
    pool.execute(sqlx::raw_sql(
        "create table inbox (
             delivery_id text collate \"C\" primary key,
             body bytea not null,
             received_at timestamptz not null default now()
         )",
    ))
    .await
    .unwrap();
    if wants("acceptance") {
        acceptance(&server, &pool).await;
    }
    if wants("first") {
        first_attempts(&server, &pool).await;
    }
    if wants("latency") {
        latency::run(&server).await;
    }
    if wants("drain") {
        backlog::drain(&server, &pool).await;
    }
    if wants("live") {
        backlog::beside_a_live_stream(&server, &pool).await;
    }
    pool.close().await;
}

/// The rate of acceptance alone: the endpoint is paused, so that nothing is handled.
async fn acceptance(server: &Server, pool: &PgPool) {
    let endpoint = Endpoint::new(pool.clone(), ACCEPTED);
    endpoint.pause().await.unwrap();
    let first = Contender::own(server, ACCEPTED).await;
    let by_hand = Contender::own(server, ACCEPT_BY_HAND).await;
    println!("\nacceptance, in answers a second\n");
    for connections in [1, CONNECTIONS, 64] {
        compare(server, pool, &first, &by_hand, connections).await;
    }
}

/// What keeping costs a delivery that succeeds at its first attempt.
async fn first_attempts(server: &Server, pool: &PgPool) {
    let layer = Contender::own(server, LAYER).await;
    println!("\ndeliveries that succeed at once, in answers a second\n");
    for variant in [KEEP_ALL, KEEP_FAILED] {
        let keeping = Contender::own(server, variant).await;
        compare(server, pool, &keeping, &layer, CONNECTIONS).await;
    }
}

/// Both in turn.
async fn compare(
    server: &Server,
    pool: &PgPool,
    contender: &Contender,
    yardstick: &Contender,
    connections: usize,
) {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        // With what was kept before, the quota would have more to count.
        pool.execute(sqlx::raw_sql(
            "truncate
                 inbox,
                 idempotent_webhook.kept_deliveries,
                 idempotent_webhook.kept_requests",
        ))
        .await
        .unwrap();
        let rate = async |contender| {
            measure::sample(server, contender, Mode::Fresh, connections, SLICE)
                .await
                .rate
        };
        rates.push((rate(contender).await, rate(yardstick).await));
    }
    println!(
        "{:<12} {:>6.0}, {:<14} {:>6.0}, {connections:>2} connections: ratio {}",
        contender.name,
        median(rates.iter().map(|rates| rates.0)),
        yardstick.name,
        median(rates.iter().map(|rates| rates.1)),
        Spread::of(rates.iter().map(|rates| rates.0 / rates.1)),
    );
}

/// The median of all rounds, and the least and the most.
struct Spread(Vec<f64>);

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = &self.0;
        let middle = values[values.len() / 2];
        write!(
            f,
            "{middle:.2} ({:.2} to {:.2})",
            values[0],
            values[values.len() - 1]
        )
    }
}
