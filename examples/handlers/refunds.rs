//! A call to an external API: the call is made at least once, and its effect happens once.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Secret, presets};
use sqlx::PgPool;
use tokio::sync::Mutex;

use crate::playground::{self, send, step};

/// The API of a bank. Like other such APIs, it remembers idempotency keys.
#[derive(Default)]
struct Bank {
    calls: usize,
    /// The refunds made so far, by key.
    refunds: HashMap<String, String>,
}

impl Bank {
    /// Makes a refund and returns its number. If the key is known, only returns the number.
    fn refund(&mut self, key: String) -> String {
        self.calls += 1;
        let number = format!("refund-{}", self.refunds.len() + 1);
        self.refunds.entry(key).or_insert(number).clone()
    }
}

async fn cancelled(
    State(bank): State<Arc<Mutex<Bank>>>,
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    let key = delivery.idempotency_key("refund");
    let refund = bank.lock().await.refund(key);
    sqlx::query("insert into refunds (number) values ($1)")
        .bind(refund)
        .execute(&mut *tx)
        .await?;
    if bank.lock().await.calls == 1 {
        // This is the worst moment to fail: the money is gone, and the row is rolled back.
        return Err(HandlerError::new("the row was not kept"));
    }
    Ok(StatusCode::OK)
}

pub async fn example(pool: &PgPool) -> playground::Result<()> {
    sqlx::query("create table refunds (number text)")
        .execute(pool)
        .await?;
    let bank = Arc::new(Mutex::new(Bank::default()));
    let shopify = presets::shopify(Secret::new("a secret")?);
    let order = TestDelivery::new(&shopify).event_type("orders/cancelled");
    let layer = IdempotentWebhook::new(pool.clone(), "cancellations", shopify);
    let app = Router::new()
        .route("/", post(cancelled).layer(layer))
        .with_state(bank.clone());

    println!("idempotency_key: a refund for a cancelled order");
    let answer = send(&app, &order).await?;
    step("the bank pays, the handler fails", answer, "500 failed")?;
    let answer = send(&app, &order).await?;
    step("the retry calls again", answer, "200 processed")?;
    let answer = send(&app, &order).await?;
    step("another retry", answer, "200 duplicate")?;
    step("calls to the bank", bank.lock().await.calls, "2")?;
    step("refunds by the bank", bank.lock().await.refunds.len(), "1")?;
    let written: String = sqlx::query_scalar("select string_agg(number, ' ') from refunds")
        .fetch_one(pool)
        .await?;
    step("refunds in the database", written, "refund-1")
}
