//! Many kept deliveries: how fast recovery drains them, and how much a live stream slows down meanwhile.

use std::time::{Duration, Instant};

use idempotent_webhook::Endpoint;
use sqlx::PgPool;

use crate::application::{DRAIN, LAYER, LIVE, backlog_of};
use crate::database::Past;
use crate::load::{Mode, body};
use crate::measure::{Sample, median, sample};
use crate::server::{Contender, Server};
use crate::{CONNECTIONS, ROUNDS, SLICE, Spread};

const KEPT: i64 = 50_000;

/// After this time, a process has noticed that an endpoint was paused or resumed.
const NOTICED: Duration = Duration::from_millis(300);

/// Fills the table with kept deliveries that look as if each had failed once. They have the same body as the deliveries
/// that senders send.
async fn keep(pool: &PgPool, past: Past, endpoint: &str) {
    sqlx::query(
        "with kept as (
             insert into idempotent_webhook.kept_deliveries (
                 endpoint, delivery_id, event_type, state, attempts, first_failed_at,
                 last_failed_at, next_attempt_at, status, reason, body_bytes
             )
             select
                 $1, $1 || n, 'push', 'due', 1, now(), now(), now(), 503, 'a benchmark', octet_length($3)
             from generate_series(1, $2) as n
         )
         insert into idempotent_webhook.kept_requests
             (endpoint, delivery_id, format, method, uri, headers, body)
         select
             $1, $1 || n, 1, 'POST', '/backlog', 'content-type: application/json\n', $3
         from generate_series(1, $2) as n",
    )
    .bind(endpoint)
    .bind(KEPT)
    .bind(body().into_bytes())
    .execute(pool)
    .await
    .unwrap();
    past.tidy(pool).await;
}

/// How many kept deliveries are left.
async fn kept(pool: &PgPool, endpoint: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from idempotent_webhook.kept_deliveries where endpoint = $1",
    )
    .bind(endpoint)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// The memory of a process, in MiB.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024.0
}

/// The results of a process that drains kept deliveries.
struct Draining {
    slots: usize,
    endpoint: Endpoint,
    name: String,
    process: Contender,
    rates: Vec<f64>,
}

/// Measures recovery with one slot, two slots, and so on, and the same handler fed by HTTP, in turn.
pub async fn drain(server: &Server, pool: &PgPool, past: Past) {
    let layer = Contender::own(server, LAYER).await;
    let mut drains = Vec::new();
    for slots in [1, 2, 4, 8] {
        let variant = format!("{DRAIN}{slots}");
        let name = backlog_of(&variant);
        let endpoint = Endpoint::new(pool.clone(), name.clone());
        endpoint.pause().await.unwrap();
        keep(pool, past, &name).await;
        drains.push(Draining {
            slots,
            endpoint,
            name,
            process: Contender::own(server, &variant).await,
            rates: Vec::new(),
        });
    }
    let mut fed = Vec::new();
    for _ in 0..ROUNDS {
        fed.push(
            sample(server, &layer, Mode::Fresh, CONNECTIONS, SLICE)
                .await
                .rate,
        );
        for drain in &mut drains {
            drain.endpoint.resume().await.unwrap();
            // Waits until the process has noticed the pause.
            tokio::time::sleep(NOTICED).await;
            let (before, started) = (kept(pool, &drain.name).await, Instant::now());
            tokio::time::sleep(SLICE).await;
            let (after, elapsed) = (kept(pool, &drain.name).await, started.elapsed());
            assert!(after > 0, "nothing is left to be drained");
            drain
                .rates
                .push((before - after) as f64 / elapsed.as_secs_f64());
            drain.endpoint.pause().await.unwrap();
            tokio::time::sleep(NOTICED).await;
        }
    }
    println!("\ndraining kept deliveries, a second\n");
    for drain in &drains {
        let ratios = |to: &[f64]| {
            let rates = drain.rates.iter().zip(to);
            Spread::of(rates.map(|(rate, other)| rate / other))
        };
        println!(
            "{} slots: {:.0}, to one slot {}, to the handler fed by HTTP {}; {:.1} MiB",
            drain.slots,
            median(drain.rates.iter().copied()),
            ratios(&drains[0].rates),
            ratios(&fed),
            resident(drain.process.process_id()),
        );
    }
    println!(
        "fed by HTTP, {CONNECTIONS} connections: {:.0}",
        median(fed.into_iter())
    );
}

/// Measures a live stream while recovery is at work and while it is not, in turn.
pub async fn beside_a_live_stream(server: &Server, pool: &PgPool, past: Past) {
    let name = backlog_of(LIVE);
    let endpoint = Endpoint::new(pool.clone(), name.clone());
    endpoint.pause().await.unwrap();
    keep(pool, past, &name).await;
    let live = Contender::own(server, LIVE).await;
    println!("\na live stream, in answers a second\n");
    for connections in [1, CONNECTIONS] {
        let mut rates = Vec::new();
        let mut drained = Vec::new();
        for _ in 0..ROUNDS {
            let alone = sample(server, &live, Mode::Fresh, connections, SLICE).await;
            endpoint.resume().await.unwrap();
            tokio::time::sleep(NOTICED).await;
            let before = kept(pool, &name).await;
            let beside = sample(server, &live, Mode::Fresh, connections, SLICE).await;
            let after = kept(pool, &name).await;
            assert!(after > 0, "nothing is left to be drained");
            drained.push((before - after) as f64 / SLICE.as_secs_f64());
            endpoint.pause().await.unwrap();
            tokio::time::sleep(NOTICED).await;
            rates.push((alone, beside));
        }
        let ratio = |of: fn(&Sample) -> f64| {
            let ratios = rates.iter().map(|(alone, beside)| of(beside) / of(alone));
            Spread::of(ratios)
        };
        println!(
            "{connections} connections: alone {:.0}, beside recovery {:.0}, ratio {}, p50 {} and p99 {} \
             times as long; drained meanwhile {:.0} a second",
            median(rates.iter().map(|(alone, _)| alone.rate)),
            median(rates.iter().map(|(_, beside)| beside.rate)),
            ratio(|sample| sample.rate),
            ratio(|sample| sample.p50_ms),
            ratio(|sample| sample.p99_ms),
            median(drained.into_iter()),
        );
    }
}
