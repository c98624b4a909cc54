//! The cost of keeping deliveries and the speed of recovery: acceptance, first attempts, draining, and a live stream
//! during recovery.
//!
//!     cargo bench --bench recovery [-- acceptance | first | latency | drain | live] [--lived] [--network]
//!
//!     cargo bench --bench recovery -- weekend [--kept=20000]
//!
//! The database is created for the benchmark and never analyzed. With `--lived`, it contains older deliveries, and is
//! analyzed.
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
mod database;
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

mod stream;
mod weekend;

use std::fmt;
use std::time::Duration;

use idempotent_webhook::Endpoint;
use sqlx::PgPool;

use application::{ACCEPT_BY_HAND, ACCEPTED, KEEP_ALL, KEEP_FAILED, LAYER};
use database::Past;
use load::Mode;
use measure::{Sample, median};
use proxy::Proxy;
use server::{Contender, Server};

/// How long one contender is under load in one round.
const SLICE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
/// How many connections the sender uses, unless stated otherwise.
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
    if stream::is_wanted() {
        return stream::run().await;
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
    let past = match options.iter().any(|option| *option == "--lived") {
        true => Past::Lived,
        false => Past::None,
    };
    past.prepare(&pool).await;
    if wants("acceptance") {
        acceptance(&server, &pool, past).await;
    }
    if wants("first") {
        first_attempts(&server, &pool, past).await;
    }
    if wants("latency") {
        latency::run(&server).await;
    }
    if wants("drain") {
        backlog::drain(&server, &pool, past).await;
    }
    if wants("live") {
        backlog::beside_a_live_stream(&server, &pool, past).await;
    }
    // `weekend` takes an hour, so it runs only on request.
    if parts.iter().any(|part| *part == "weekend") {
        let kept = options
            .iter()
            .find_map(|option| option.strip_prefix("--kept="));
        let kept = kept.map_or(weekend::KEPT, |kept| kept.parse().unwrap());
        weekend::run(&server, &pool, past, kept).await;
    }
    pool.close().await;
}

/// The rate of acceptance alone. The endpoint is paused, so nothing is handled.
async fn acceptance(server: &Server, pool: &PgPool, past: Past) {
    let endpoint = Endpoint::new(pool.clone(), ACCEPTED);
    endpoint.pause().await.unwrap();
    let first = Contender::own(server, ACCEPTED).await;
    let by_hand = Contender::own(server, ACCEPT_BY_HAND).await;
    println!("\nacceptance, in answers a second\n");
    for connections in [1, CONNECTIONS, 64] {
        compare(server, pool, past, &first, &by_hand, connections).await;
    }
}

/// The cost of keeping a delivery that succeeds at its first attempt.
async fn first_attempts(server: &Server, pool: &PgPool, past: Past) {
    let layer = Contender::own(server, LAYER).await;
    println!("\ndeliveries that succeed at once, in answers a second\n");
    for variant in [KEEP_ALL, KEEP_FAILED] {
        let keeping = Contender::own(server, variant).await;
        compare(server, pool, past, &keeping, &layer, CONNECTIONS).await;
    }
}

/// Measures two contenders in turn.
async fn compare(
    server: &Server,
    pool: &PgPool,
    past: Past,
    contender: &Contender,
    yardstick: &Contender,
    connections: usize,
) {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        // If earlier rows stayed, the quota would have more to count.
        past.restore(pool).await;
        let sample = async |contender| {
            measure::sample(server, contender, Mode::Fresh, connections, SLICE).await
        };
        rounds.push((sample(contender).await, sample(yardstick).await));
    }
    let ratio = |of: fn(&Sample) -> f64| {
        let ratios = rounds.iter().map(|(one, other)| of(one) / of(other));
        Spread::of(ratios)
    };
    println!(
        "{:<12} {:>6.0}, {:<14} {:>6.0}, {connections:>2} connections: ratio {}, of CPU time {}",
        contender.name,
        median(rounds.iter().map(|(one, _)| one.rate)),
        yardstick.name,
        median(rounds.iter().map(|(_, other)| other.rate)),
        ratio(|sample| sample.rate),
        ratio(Sample::cpu),
    );
}

/// The median, the minimum and the maximum of all rounds.
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
