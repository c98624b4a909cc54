//! The metrics, served for Prometheus.
//!
//!     cargo run --example metrics
//!
//! The example sends itself a few deliveries and prints what Prometheus would scrape.

mod playground;

use std::process::ExitCode;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Secret, presets};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use playground::{Result, step};
use sqlx::PgPool;
use tokio::net::TcpListener;

const SECRET: &str = "a secret";

/// The buckets of times, in seconds. Without buckets, the exporter makes summaries, and the quantiles of several
/// processes cannot be combined.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The buckets of the sender's wait, in seconds. The wait is measured from the time in the signature, which is in whole
/// seconds, so smaller buckets would show nothing. For each usual deadline, 70% of it is the bound of a bucket.
const WAITS: [f64; 10] = [1.0, 2.0, 3.5, 5.0, 7.0, 10.0, 14.0, 21.0, 42.0, 60.0];

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> Result<()> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &BUCKETS)?
        .set_buckets_for_metric(
            Matcher::Full("idempotent_webhook_sender_wait_seconds".into()),
            &WAITS,
        )?
        .install_recorder()?;

    let github = presets::github(Secret::new(SECRET)?);
    let push = TestDelivery::new(&github).uri("/webhooks/github").id("1");
    let layer = IdempotentWebhook::new(pool, "deployments", github);
    let app = Router::new()
        .route("/webhooks/github", post(deploy).layer(layer))
        // In production, on a port that only Prometheus can reach.
        .route("/metrics", get(async move || recorder.render()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let metrics = format!("http://{}/metrics", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, app.clone()).into_future());

    let answer = playground::send(&app, &push).await?;
    step("a push", answer, "200 processed")?;
    let answer = playground::send(&app, &push).await?;
    step("its retry", answer, "200 duplicate")?;
    let answer = playground::send(&app, &push.clone().id("fails")).await?;
    step("a delivery that fails", answer, "500 failed")?;
    let answer = playground::send(&app, &push.tampered()).await?;
    step(
        "a forged delivery",
        answer,
        "401 rejected: signature missing or not valid",
    )?;

    println!("\n{metrics}");
    let scraped = reqwest::get(metrics).await?.text().await?;
    for line in scraped.lines().filter(|line| !line.contains("_bucket{")) {
        println!("  {line}");
    }
    Ok(())
}

async fn deploy(_tx: DedupeTx, delivery: Delivery) -> StatusCode {
    match delivery.id().as_str() {
        "fails" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    }
}
