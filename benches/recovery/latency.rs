//! The time from the answer of an accepted delivery to the start of its handler.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Keep, Recovery, Secret, presets};
use sqlx::PgPool;
use tokio::sync::mpsc;
use tower::ServiceExt;

use crate::application::{SECRET, github};
use crate::measure::median;
use crate::server::Server;

const DELIVERIES: usize = 500;

pub async fn run(server: &Server) {
    let url = server.url_for_applications();
    let pool = PgPool::connect(&url).await.unwrap();
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = move |_: DedupeTx| {
        started.send(Instant::now()).unwrap();
        std::future::ready(())
    };
    let recovery = Recovery::new(pool.clone());
    let layer = github(&pool, "latency").keep(Keep::accepted(&recovery));
    let app: Router = Router::new().route("/", post(handler).layer(layer));
    let recovery = recovery.spawn(app.clone());
    let provider = presets::github(Secret::new(SECRET).unwrap());
    let mut latencies = Vec::new();
    for number in 0..DELIVERIES {
        let delivery = TestDelivery::new(&provider).id(format!("latency-{number}"));
        let request = delivery.request::<Body>();
        let response = app.clone().oneshot(request).await.unwrap();
        let answered = Instant::now();
        assert_eq!(response.status(), 200);
        let started = starts.recv().await.unwrap();
        latencies.push(started.saturating_duration_since(answered).as_secs_f64() * 1e3);
        // Gives the process time to become idle again.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    latencies.sort_unstable_by(f64::total_cmp);
    println!(
        "\nfrom the answer to the start of the handler: median {:.2} ms, p99 {:.2} ms",
        median(latencies.iter().copied()),
        latencies[DELIVERIES * 99 / 100]
    );
    recovery.stop().await;
}
