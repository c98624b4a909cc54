//! Test fixtures from real deliveries. The example captures a delivery from the archive, with pseudonyms instead of
//! names, and a test signs the capture again.
//!
//!     cargo run --example captures
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts.

mod playground;

use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::extract::Json;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::testing::{Pseudonyms, TestDelivery, assert_idempotent};
use idempotent_webhook::{
    DedupeTx, Endpoint, HandlerError, IdempotentWebhook, Keep, Recovery, Secret, presets,
};
use playground::{send, step};
use serde::Deserialize;
use sqlx::PgPool;

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const PAID: &str = r#"{
    "id": "evt_1NG8Du2eZvKYlo2CUI79vXWy", "type": "invoice.paid", "created": 1750000000,
    "data": {"object": {
        "id": "in_1MtHbELkdIwHu7ixl4OzzPMv", "status": "paid", "currency": "usd", "amount_paid": 4200,
        "customer": "cus_NeZwdNtLEOXuvB", "customer_name": "Ada Lovelace", "customer_email": "ada@lovelace.org",
        "customer_phone": "+49 151 23456789", "description": "Engine No. 2 for Ada Lovelace"
    }}
}"#;

#[derive(Deserialize)]
struct Paid {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Invoice,
}

#[derive(Deserialize)]
struct Invoice {
    id: String,
    amount_paid: i64,
    status: String,
}

async fn book(mut tx: DedupeTx, Json(paid): Json<Paid>) -> Result<StatusCode, HandlerError> {
    let invoice = paid.data.object;
    if invoice.status != "paid" {
        return Err(HandlerError::new("it is not paid"));
    }
    sqlx::query("insert into payments values ($1, $2)")
        .bind(invoice.id)
        .bind(invoice.amount_paid)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

/// The application. Production uses one secret, and the test uses another.
fn app(pool: &PgPool, endpoint: &'static str, secret: Secret) -> Router {
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool.clone(), endpoint, presets::stripe(secret))
        .keep(Keep::all(&recovery).processed_for(WEEK));
    Router::new().route("/webhooks/stripe", post(book).layer(layer))
}

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    sqlx::query("create table payments (invoice text primary key, amount int8)")
        .execute(&pool)
        .await?;

    println!("A delivery in production");
    let secret = Secret::new("whsec_live")?;
    let came = TestDelivery::new(&presets::stripe(secret.clone()))
        .uri("/webhooks/stripe")
        .body(PAID);
    let production = app(&pool, "billing", secret);
    step(
        "an invoice",
        send(&production, &came).await?,
        "200 processed",
    )?;

    println!("A capture of it, from the archive");
    let folder = tempfile::tempdir()?;
    let archive = Filter::new()
        .state(KeptState::Processed)
        .event_type("invoice.paid");
    let billing = Endpoint::new(pool.clone(), "billing");
    let captures = billing.captures(&archive, 5, &Pseudonyms::new()).await?;
    step("captures", captures.len(), "1")?;
    for capture in captures {
        capture?.write_to(folder.path())?;
    }
    let file = folder.path().join("invoice.paid.http");
    let written = std::fs::read_to_string(&file)?;
    println!("{written}");
    let names_ada = ["Ada", "lovelace", "23456789"]
        .iter()
        .any(|part| written.contains(part));
    step("does it name anybody", names_ada, "false")?;

    println!("A test signs it again, with the secret of the test");
    let secret = Secret::new("whsec_test")?;
    let paid = TestDelivery::from_capture(&presets::stripe(secret.clone()), &file);
    let payments = async || -> i64 {
        let count = sqlx::query_scalar("select count(*) from payments");
        count.fetch_one(&pool).await.unwrap_or(-1)
    };
    let before = payments().await;
    assert_idempotent(&app(&pool, "test", secret), &paid, payments).await;
    step("payments of the capture", payments().await - before, "1")?;
    Ok(())
}
