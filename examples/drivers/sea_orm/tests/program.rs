//! The program that the guide shows inserts a payment once.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::process::Stdio;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};
use reqwest::Client;
use sqlx::{ConnectOptions, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const SECRET: &str = "whsec_program";

#[tokio::test]
async fn the_program_inserts_a_payment_once() {
    let server = ThrowawayPostgres::start(Durability::Lossy).await.unwrap();
    let options = server.options("postgres");
    let mut program = Command::new(env!("CARGO_BIN_EXE_sea_orm"))
        .env("DATABASE_URL", options.to_url_lossy().as_str())
        .env("PORT", "0")
        .env("STRIPE_WEBHOOK_SECRET", SECRET)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let url = line.strip_prefix("listening on ").unwrap();

    let stripe = presets::stripe(Secret::new(SECRET).unwrap());
    let delivery = TestDelivery::new(&stripe)
        .uri("/webhooks/stripe")
        .id("evt_1");
    let client = Client::new();
    let send = async |delivery: &TestDelivery| {
        let (parts, body) = delivery.request::<reqwest::Body>().into_parts();
        let request = client.post(format!("{url}{}", parts.uri));
        let response = request.headers(parts.headers).body(body).send();
        let response = response.await.unwrap();
        let outcome = response.headers()["x-webhook-outcome"].to_str().unwrap();
        (response.status().as_u16(), outcome.to_owned())
    };

    assert_eq!(send(&delivery).await, (200, "processed".into()));
    assert_eq!(send(&delivery).await, (200, "duplicate".into()));
    assert_eq!(send(&delivery.tampered()).await, (401, "rejected".into()));

    let pool = PgPool::connect_with(options).await.unwrap();
    let payments: Vec<String> = sqlx::query_scalar("select event_id from payments")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(payments, ["evt_1"]);
    pool.close().await;
    program.kill().await.unwrap();
}
