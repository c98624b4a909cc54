//! How much a live stream slows down while a user loads dashboard pages.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{Request, Response};
use http_body_util::Full;
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Secret, presets};
use sha2::Sha256;
use sqlx::{Executor, PgPool};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::browser::Browser;
use crate::{LARGE, median};

const ROUNDS: usize = 7;
const SLICE: Duration = Duration::from_secs(5);
const CONNECTIONS: usize = 8;
const RELOADS: Duration = Duration::from_secs(1);

pub async fn run(pool: &PgPool) {
    pool.execute("create table effects (delivery_id text)")
        .await
        .unwrap();
    let browser = Browser::new(pool.clone());
    let list = format!("deliveries?state=dead&endpoint={LARGE}");
    // This first run fills the caches, including Postgres' caches for rows of this size.
    deliver(pool).await;
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let alone = deliver(pool).await;
        let looking = tokio::spawn({
            let (browser, list) = (browser.clone(), list.clone());
            async move {
                let mut reloads = tokio::time::interval(RELOADS);
                loop {
                    reloads.tick().await;
                    browser.see("overview").await;
                    browser.see(&list).await;
                }
            }
        });
        let beside = deliver(pool).await;
        looking.abort();
        rates.push((alone, beside));
    }
    let of = |f: fn(&(f64, f64)) -> f64| median(rates.iter().map(f).collect());
    println!(
        "\nfresh deliveries beside an operator who reloads two pages each second, {CONNECTIONS} at a time\n"
    );
    println!("{:>12} {:>12} {:>8}", "alone", "beside", "ratio");
    println!(
        "{:>12.0} {:>12.0} {:>8.2}",
        of(|rates| rates.0),
        of(|rates| rates.1),
        of(|rates| rates.1 / rates.0),
    );
}

/// The rate of fresh deliveries through the layer, per second.
async fn deliver(pool: &PgPool) -> f64 {
    let github = presets::github(Secret::new("secret").unwrap());
    let service = ServiceBuilder::new()
        .layer(IdempotentWebhook::new(pool.clone(), LARGE, github))
        .service(service_fn(handle));
    let end = Instant::now() + SLICE;
    let working: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                let mut answers = 0;
                let mut random = fastrand::Rng::new();
                while Instant::now() < end {
                    let request = push(&format!("{:032x}----", random.u128(..)));
                    let response = service.clone().oneshot(request).await.unwrap();
                    assert_eq!(response.headers()["x-webhook-outcome"], "processed");
                    answers += 1;
                }
                answers
            })
        })
        .collect();
    let mut answers = 0;
    for work in working {
        answers += work.await.unwrap();
    }
    f64::from(answers) / SLICE.as_secs_f64()
}

async fn handle(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut tx = DedupeTx::take(request.extensions()).unwrap();
    sqlx::query("insert into effects (delivery_id) values ('live')")
        .execute(&mut *tx)
        .await
        .unwrap();
    Ok(Response::default())
}

fn push(id: &str) -> Request<Full<Bytes>> {
    let body = Bytes::from(format!(r#"{{"text":"{}"}}"#, "x".repeat(3000)));
    let mac = Hmac::<Sha256>::new_from_slice(b"secret").unwrap();
    let signature = hex::encode(mac.chain_update(&body).finalize().into_bytes());
    Request::post("/")
        .header("X-Hub-Signature-256", format!("sha256={signature}"))
        .header("X-GitHub-Delivery", id)
        .body(body.into())
        .unwrap()
}
