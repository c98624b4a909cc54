//! Many kept deliveries: how fast they are drained, and what a live stream loses meanwhile.

use std::time::{Duration, Instant};

use idempotent_webhook::Endpoint;
use sqlx::PgPool;

use crate::application::{BACKLOG, CONCURRENCY, DRAIN, LAYER, LIVE};
use crate::load::{Mode, body};
use crate::measure::{median, sample};
use crate::server::{Contender, Server};
use crate::{ROUNDS, SLICE};

const KEPT: i64 = 100_000;

/// It ends after so many, if they are not drained by then.
const MAX_ROUNDS: usize = 20;

/// Keeps deliveries with the body that senders send, as if each had failed once.
async fn keep(pool: &PgPool, name: &str) {
    sqlx::query(
        "with kept as (
             insert into idempotent_webhook.kept_deliveries (
                 endpoint, delivery_id, event_type, state, attempts, first_failed_at,
                 last_failed_at, next_attempt_at, status, reason, body_bytes
             )
             select
                 $1, $2 || n, 'push', 'due', 1, now(), now(), now(), 503, 'a benchmark', octet_length($4)
             from generate_series(1, $3) as n
         )
         insert into idempotent_webhook.kept_requests
             (endpoint, delivery_id, format, method, uri, headers, body)
         select
             $1, $2 || n, 1, 'POST', '/backlog', 'content-type: application/json\n', $4
         from generate_series(1, $3) as n",
    )
    .bind(BACKLOG)
    .bind(name)
    .bind(KEPT)
    .bind(body().into_bytes())
    .execute(pool)
    .await
    .unwrap();
    for table in ["kept_deliveries", "kept_requests"] {
        let vacuum = format!("vacuum analyze idempotent_webhook.{table}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(vacuum))
            .execute(pool)
            .await
            .unwrap();
    }
    // Now, rather than while it drains. What has been kept for a while has seen one, too.
    sqlx::query("checkpoint").execute(pool).await.unwrap();
}

/// How many are processed.
async fn processed(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from effects where delivery_id like 'kept-%'")
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn kept(pool: &PgPool) -> i64 {
    sqlx::query_scalar(
        "select count(*) from idempotent_webhook.kept_deliveries where endpoint = $1",
    )
    .bind(BACKLOG)
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

/// In turn: recovery for some seconds, then the same handler fed by HTTP.
pub async fn drain(server: &Server, pool: &PgPool) {
    let endpoint = Endpoint::new(pool.clone(), BACKLOG);
    endpoint.pause().await.unwrap();
    keep(pool, "kept-").await;
    let layer = Contender::own(server, LAYER).await;
    let recovery = Contender::own(server, DRAIN).await;
    let mut rates = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let fed = sample(server, &layer, Mode::Fresh, CONCURRENCY, SLICE).await;
        endpoint.resume().await.unwrap();
        // Until it has noticed.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let (before, started) = (processed(pool).await, Instant::now());
        tokio::time::sleep(SLICE).await;
        let (after, elapsed) = (processed(pool).await, started.elapsed());
        memory.push(resident(recovery.process_id()));
        if after == KEPT {
            break;
        }
        rates.push(((after - before) as f64 / elapsed.as_secs_f64(), fed.rate));
        endpoint.pause().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Those whose rows have not ended yet, unless there was no time for all.
    let left = KEPT - processed(pool).await;
    while kept(pool).await > left {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("\ndraining {KEPT} kept deliveries, {CONCURRENCY} at a time, a second; {left} left\n");
    println!(
        "recovery {:.0}, fed by HTTP {:.0}, ratio {:.2}",
        median(rates.iter().map(|rates| rates.0)),
        median(rates.iter().map(|rates| rates.1)),
        median(rates.iter().map(|rates| rates.0 / rates.1)),
    );
    println!(
        "memory of the process in MiB: first {:.1}, last {:.1}, most {:.1}",
        memory[0],
        memory[memory.len() - 1],
        memory.iter().copied().fold(0.0, f64::max),
    );
}

/// A live stream with recovery at work beside it, and without, in turn.
pub async fn beside_a_live_stream(server: &Server, pool: &PgPool) {
    let endpoint = Endpoint::new(pool.clone(), BACKLOG);
    endpoint.pause().await.unwrap();
    keep(pool, "beside-").await;
    let live = Contender::own(server, LIVE).await;
    println!("\na live stream, in answers a second\n");
    for connections in [1, CONCURRENCY] {
        let mut rates = Vec::new();
        let mut drained = Vec::new();
        for _ in 0..ROUNDS {
            let alone = sample(server, &live, Mode::Fresh, connections, SLICE).await;
            endpoint.resume().await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            let before = kept(pool).await;
            let beside = sample(server, &live, Mode::Fresh, connections, SLICE).await;
            drained.push((before - kept(pool).await) as f64 / SLICE.as_secs_f64());
            endpoint.pause().await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            rates.push((alone, beside));
        }
        println!(
            "{connections} connections: alone {:.0}, beside recovery {:.0}, ratio {:.2}, p99 {:.2} \
             times as long; drained meanwhile {:.0} a second",
            median(rates.iter().map(|(alone, _)| alone.rate)),
            median(rates.iter().map(|(_, beside)| beside.rate)),
            median(rates.iter().map(|(alone, beside)| beside.rate / alone.rate)),
            median(
                rates
                    .iter()
                    .map(|(alone, beside)| beside.p99_ms / alone.p99_ms)
            ),
            median(drained.into_iter()),
        );
    }
}
