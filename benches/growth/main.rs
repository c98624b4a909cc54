//! How the costs grow: with the rows in the table, while rows are pruned, with the number
//! of processes.
//!
//!     cargo bench --bench growth
//!
//! `benches/README.md` says how each figure is obtained.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that fails may panic"
)]

#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/application.rs"]
mod application;
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
#[path = "../throughput/server.rs"]
mod server;
#[path = "../../examples/throwaway_postgres/mod.rs"]
mod throwaway_postgres;

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{Request, Response};
use http_body_util::Full;
use idempotent_webhook::{IdempotentWebhook, Provider, Secret, prune};
use sha2::Sha256;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use load::Mode;
use server::{Contender, Server};

const ROUNDS: usize = 5;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main]
async fn main() {
    if application::is_wanted() {
        return application::run().await;
    }
    if load::is_wanted() {
        return load::run().await;
    }
    let server = Server::start().await;
    rows(&server).await;
    pruning(&server).await;
    processes(&server).await;
}

/// A database of its own with so many rows, as old as they are many.
async fn filled(server: &Server, rows: u64) -> PgPool {
    let name = format!("rows_{rows}");
    let admin = PgPool::connect_with(server.database("postgres"))
        .await
        .unwrap();
    admin
        .execute(AssertSqlSafe(format!("create database {name}")))
        .await
        .unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect_with(server.database(&name))
        .await
        .unwrap();
    idempotent_webhook::migrate(&pool).await.unwrap();
    sqlx::query(
        "insert into idempotent_webhook.deliveries (endpoint, delivery_id, event_type, received_at)
         select 'test', gen_random_uuid(), 'push', now() - interval '60 days' - n * interval '1 ms'
         from generate_series(1, $1) n",
    )
    .bind(i64::try_from(rows).unwrap())
    .execute(&pool)
    .await
    .unwrap();
    pool.execute("vacuum analyze idempotent_webhook.deliveries")
        .await
        .unwrap();
    pool.execute("checkpoint").await.unwrap();
    pool
}

fn push(id: &str) -> Request<Full<Bytes>> {
    let mac = Hmac::<Sha256>::new_from_slice(b"secret").unwrap();
    let signature = hex::encode(mac.chain_update(b"{}").finalize().into_bytes());
    Request::post("/")
        .header("X-Hub-Signature-256", format!("sha256={signature}"))
        .header("X-GitHub-Delivery", id)
        .body(Bytes::from_static(b"{}").into())
        .unwrap()
}

/// Fresh deliveries through the layer for so long, so many at a time, and how long each
/// took, sorted. The handler does nothing, so this is the claim and its commit.
async fn claims(pool: &PgPool, at_a_time: usize, time: Duration) -> Vec<Duration> {
    let github = Provider::github(Secret::new("secret").unwrap());
    let service = ServiceBuilder::new()
        .layer(IdempotentWebhook::new(pool.clone(), "test", github))
        .service(service_fn(async |_: Request<Full<Bytes>>| {
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        }));
    let end = Instant::now() + time;
    let working: Vec<_> = (0..at_a_time)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                let mut random = fastrand::Rng::new();
                while Instant::now() < end {
                    let request = push(&format!("{:032x}----", random.u128(..)));
                    let started = Instant::now();
                    let response = service.clone().oneshot(request).await.unwrap();
                    assert_eq!(response.headers()["x-webhook-outcome"], "processed");
                    latencies.push(started.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for work in working {
        latencies.extend(work.await.unwrap());
    }
    latencies.sort();
    latencies
}

fn percentile(sorted: &[Duration], hundredth: usize) -> Duration {
    sorted[sorted.len() * hundredth / 100]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn rows(server: &Server) {
    println!("\nclaim and commit by rows in the table, one at a time\n");
    let sizes = [10_000, 1_000_000, 10_000_000];
    let mut pools = Vec::new();
    for size in sizes {
        pools.push(filled(server, size).await);
    }
    let mut p50 = vec![Vec::new(); sizes.len()];
    for round in 0..=ROUNDS {
        for (size, pool) in pools.iter().enumerate() {
            let latencies = claims(pool, 1, Duration::from_secs(2)).await;
            // The first round fills the caches.
            if round > 0 {
                p50[size].push(percentile(&latencies, 50).as_secs_f64() * 1e3);
            }
        }
    }
    println!("{:>12} {:>10} {:>8}", "rows", "p50 ms", "ratio");
    for (size, values) in sizes.into_iter().zip(&p50) {
        let ratios = values
            .iter()
            .zip(&p50[0])
            .map(|(value, first)| value / first);
        println!(
            "{size:>12} {:>10.2} {:>8.2}",
            median(values.clone()),
            median(ratios.collect())
        );
    }
    for pool in pools {
        pool.close().await;
    }
}

async fn pruning(server: &Server) {
    println!("\nclaims while 1 million rows are pruned, 8 at a time\n");
    let pool = filled(server, 1_000_001).await;
    let before = claims(&pool, 8, Duration::from_secs(5)).await;
    let (during, pruned) = {
        let claiming = claims(&pool, 8, Duration::from_secs(5));
        let pruning = async {
            let started = Instant::now();
            let pruned = prune(&pool, 45 * DAY).await.unwrap();
            (pruned, started.elapsed())
        };
        tokio::join!(claiming, pruning)
    };
    println!("{:>10} {:>10} {:>10}", "", "p50 ms", "p99 ms");
    for (name, latencies) in [("before", &before), ("during", &during)] {
        println!(
            "{name:>10} {:>10.2} {:>10.2}",
            percentile(latencies, 50).as_secs_f64() * 1e3,
            percentile(latencies, 99).as_secs_f64() * 1e3
        );
    }
    println!(
        "ratio of p99 {:.2}; {} rows pruned in {:.1} s",
        percentile(&during, 99).as_secs_f64() / percentile(&before, 99).as_secs_f64(),
        pruned.0.deliveries,
        pruned.1.as_secs_f64()
    );
    pool.close().await;
}

async fn processes(server: &Server) {
    println!("\nfresh deliveries by processes on one Postgres, 16 connections in all\n");
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(Contender::own(server, "layer").await);
    }
    let counts = [1, 2, 4];
    let mut rates = vec![Vec::new(); counts.len()];
    for _ in 0..ROUNDS {
        for (index, count) in counts.into_iter().enumerate() {
            let time = Duration::from_secs(2);
            let sending = running[..count]
                .iter()
                .map(|process| {
                    tokio::spawn(load::send(process.address, Mode::Fresh, 16 / count, time))
                })
                .collect::<Vec<_>>();
            let mut answers = 0;
            for sent in sending {
                answers += sent.await.unwrap().0.len();
            }
            rates[index].push(answers as f64 / time.as_secs_f64());
        }
    }
    println!("{:>10} {:>10} {:>8}", "processes", "per s", "ratio");
    for (count, values) in counts.into_iter().zip(&rates) {
        let ratios = values
            .iter()
            .zip(&rates[0])
            .map(|(value, first)| value / first);
        println!(
            "{count:>10} {:>10.0} {:>8.2}",
            median(values.clone()),
            median(ratios.collect())
        );
    }
}
