//! How the costs grow: with the number of rows in the table, while rows are pruned, and with the number of processes.
//!
//!     cargo bench --bench growth
//!     cargo bench --bench growth -- --index
//!     cargo bench --bench growth -- --large
//!     cargo bench --bench growth -- --listed
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
mod listed;
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
#[path = "../throughput/server.rs"]
mod server;

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{Request, Response};
use http_body_util::Full;
use idempotent_webhook::{IdempotentWebhook, Retention, Secret, presets, prune};
use sha2::Sha256;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use load::Mode;
use server::{Contender, Server};

const ROUNDS: usize = 5;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const APART: Duration = Duration::from_millis(1);

#[tokio::main]
async fn main() {
    if application::is_wanted() {
        return application::run().await;
    }
    if load::is_wanted() {
        return load::run().await;
    }
    let server = Server::start().await;
    if std::env::args().any(|argument| argument == "--large") {
        return retention(&server, 100_000_000).await;
    }
    if std::env::args().any(|argument| argument == "--index") {
        return index(&server).await;
    }
    if std::env::args().any(|argument| argument == "--listed") {
        return listed::run(&server).await;
    }
    rows(&server).await;
    pruning(&server).await;
    retention(&server, 4_000_000).await;
    processes(&server).await;
}

/// Creates a database with this name and this many rows. The newest row has the age `newest`, and each other row is
/// older by `apart` than the next newer one.
async fn filled(
    server: &Server,
    name: &str,
    rows: u64,
    newest: Duration,
    apart: Duration,
) -> PgPool {
    let admin = PgPool::connect_with(server.database("postgres"))
        .await
        .unwrap();
    admin
        .execute(AssertSqlSafe(format!("create database {name}")))
        .await
        .unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect_with(server.database(name))
        .await
        .unwrap();
    idempotent_webhook::migrate(&pool).await.unwrap();
    // Creating the indexes at the end takes a fraction of the time.
    pool.execute(sqlx::raw_sql(
        "alter table idempotent_webhook.deliveries drop constraint deliveries_pkey;
         drop index idempotent_webhook.deliveries_received",
    ))
    .await
    .unwrap();
    sqlx::query(
        "insert into idempotent_webhook.deliveries (endpoint, delivery_id, event_type, received_at)
         select 'test', gen_random_uuid(), 'push', now() - $2 - n * $3
         from generate_series($1, 1, -1) n",
    )
    .bind(i64::try_from(rows).unwrap())
    .bind(newest)
    .bind(apart)
    .execute(&pool)
    .await
    .unwrap();
    pool.execute(sqlx::raw_sql(
        "set maintenance_work_mem = '1GB';
         alter table idempotent_webhook.deliveries
             add primary key (delivery_id, endpoint, tenant);
         create index deliveries_received
             on idempotent_webhook.deliveries (endpoint, received_at);
         reset maintenance_work_mem",
    ))
    .await
    .unwrap();
    pool.execute(
        "insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
         values ('test', interval '3 days')",
    )
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

/// Sends fresh deliveries through the layer for the duration `time`, `at_a_time` deliveries at once. Returns how long
/// each took, in ascending order. The handler does nothing, so this is the time for the claim and its commit.
async fn claims(pool: &PgPool, at_a_time: usize, time: Duration) -> Vec<Duration> {
    let github = presets::github(Secret::new("secret").unwrap());
    let service = ServiceBuilder::new()
        .layer(IdempotentWebhook::new(pool.clone(), "test", github).allow_unused_transaction())
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
        let name = format!("rows_{size}");
        pools.push(filled(server, &name, size, 60 * DAY, APART).await);
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

/// What the index on the receipt time costs each claim. Measures a database with the index and one without it, in turn.
async fn index(server: &Server) {
    println!("\nclaims with the index on the time to those without, a million rows, 8 at a time\n");
    let with = filled(server, "with_index", 1_000_000, DAY, APART).await;
    let without = filled(server, "without_index", 1_000_000, DAY, APART).await;
    without
        .execute("drop index idempotent_webhook.deliveries_received")
        .await
        .unwrap();
    let mut ratios = Vec::new();
    for round in 0..=60 {
        // The two databases take turns to be measured first, because each measurement leaves behind work for the disk.
        let mut rates = [0.0; 2];
        let mut order = [(0, &with), (1, &without)];
        order.rotate_left(round % 2);
        for (index, pool) in order {
            let latencies = claims(pool, 8, Duration::from_secs(2)).await;
            rates[index] = latencies.len() as f64;
        }
        // The first round fills the caches.
        if round > 0 {
            ratios.push(rates[0] / rates[1]);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |hundredth: usize| ratios[ratios.len() * hundredth / 100];
    println!(
        "ratio of the rates: median {:.3}, quartiles {:.3} and {:.3}, of {} rounds",
        at(50),
        at(25),
        at(75),
        ratios.len()
    );
    let size = "select (pg_relation_size('idempotent_webhook.deliveries_received')::float8
                    / count(*))::float8 from idempotent_webhook.deliveries";
    let bytes: f64 = sqlx::query_scalar(size).fetch_one(&with).await.unwrap();
    println!("{bytes:.0} bytes of index a row");
    with.close().await;
    without.close().await;
}

async fn pruning(server: &Server) {
    println!("\nclaims while 1 million rows are pruned, 8 at a time\n");
    let pool = filled(server, "pruning", 1_000_000, 60 * DAY, APART).await;
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

/// Retention over a table that holds 45 days of deliveries. Two passes find nothing to delete. Then a round deletes 2
/// million rows, or all rows if there are fewer, while claims are made.
async fn retention(server: &Server, rows: u64) {
    println!("\nrounds of retention, {rows} rows\n");
    let age = 45 * DAY;
    let apart = Duration::from_micros(u64::try_from(age.as_micros()).unwrap() / rows * 999 / 1000);
    let pool = filled(server, "retention", rows, Duration::ZERO, apart).await;
    for pass in ["first", "second"] {
        let started = Instant::now();
        let pruned = prune(&pool, age).await.unwrap();
        println!(
            "{pass} pass, nothing due: {:.1} ms, {} rows",
            started.elapsed().as_secs_f64() * 1e3,
            pruned.deliveries
        );
    }

    println!("\nclaims beside a round that deletes, 8 at a time\n");
    let age = age - apart * u32::try_from(rows.min(2_000_000)).unwrap();
    let time = Duration::from_secs(20);
    let before = claims(&pool, 8, time).await;
    let (during, (seconds, pruned)) = tokio::join!(claims(&pool, 8, time), round(&pool, age));
    println!(
        "{:>10} {:>10} {:>10} {:>10}",
        "", "per s", "p50 ms", "p99 ms"
    );
    for (name, latencies) in [("before", &before), ("during", &during)] {
        println!(
            "{name:>10} {:>10.0} {:>10.2} {:>10.2}",
            latencies.len() as f64 / 20.0,
            percentile(latencies, 50).as_secs_f64() * 1e3,
            percentile(latencies, 99).as_secs_f64() * 1e3
        );
    }
    println!("{pruned} rows in {seconds:.1} s, the claims in the first 20 s of it");
    pool.close().await;
}

/// Runs one round of retention. Returns how long the round took, and how many rows it deleted. The interval between
/// rounds is long enough to see that the round has ended before the next one starts.
async fn round(pool: &PgPool, age: Duration) -> (f64, u64) {
    let turn = "select count(*) from idempotent_webhook.turns where name = 'retention'";
    let is_on = async || {
        sqlx::query_scalar::<_, i64>(turn)
            .fetch_one(pool)
            .await
            .unwrap()
            == 1
    };
    let task = Retention::new(pool.clone(), age)
        .every(Duration::from_secs(2))
        .spawn();
    while !is_on().await {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let started = Instant::now();
    while is_on().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    (seconds, task.stop().await.deliveries)
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
