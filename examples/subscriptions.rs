//! A Stripe endpoint whose subscription is wrong: nothing fails, but some events do not arrive. The application
//! compares the subscription with its own table of handlers, before a deploy and once an hour.
//!
//!     cargo run --example subscriptions
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts.

mod playground;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use idempotent_webhook::subscriptions::{Http, StripeSubscriptions, Subscriptions};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Events, IdempotentWebhook, Keep, Recovery, Secret, presets};
use playground::{send, step};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

const ADDRESS: &str = "https://example.com/webhooks/stripe";

/// The time between two comparisons. In production, use the default, an hour.
const EVERY: Duration = Duration::from_secs(1);

/// How long to wait until a difference is reported. It takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoint as it is set up in Stripe's dashboard.
type Endpoint = Arc<Mutex<Value>>;

fn set_up(version: Option<&str>, event_types: [&str; 2]) -> Value {
    json!({
        "id": "we_1", "url": ADDRESS, "status": "enabled", "api_version": version, "enabled_events": event_types,
    })
}

/// Serves `GET /v1/webhook_endpoints`. Returns the address of the API.
async fn serve(endpoint: Endpoint) -> playground::Result<String> {
    let list = async |State(endpoint): State<Endpoint>| {
        let endpoint = endpoint.lock().await.clone();
        Json(json!({ "object": "list", "data": [endpoint], "has_more": false }))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let api = Router::new()
        .route("/v1/webhook_endpoints", get(list))
        .with_state(endpoint);
    tokio::spawn(axum::serve(listener, api).into_future());
    Ok(address)
}

async fn paid(_: DedupeTx) -> StatusCode {
    StatusCode::OK
}

async fn disputed(_: DedupeTx) -> StatusCode {
    StatusCode::OK
}

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    let endpoint = set_up(None, ["invoice.paid", "customer.updated"]);
    let endpoint = Arc::new(Mutex::new(endpoint));
    let http = Http::new().base(serve(endpoint.clone()).await?);

    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = told.clone();
    let recovery = Recovery::new(pool.clone()).on_change(move |change| {
        let state = if change.is_over { "over" } else { "begun" };
        if let Ok(mut told) = note.lock() {
            told.push(format!("{}: {}", change.problem, state));
        }
    });
    let provider =
        presets::stripe(Secret::new("whsec_example")?).expect_version("2025-09-30.clover");
    let stripe = IdempotentWebhook::new(pool.clone(), "billing", provider.clone())
        .keep(Keep::failed(&recovery));
    let source = StripeSubscriptions::new(Secret::new("rk_example")?).http(http);
    let subscriptions = Subscriptions::new(&stripe, source, ADDRESS)?.every(EVERY);
    let events = Events::new()
        .on("invoice.paid", paid)
        .on("charge.dispute.*", disputed)
        .ignore_others();
    let app = Router::new().route("/webhooks/stripe", post(events.layer(stripe)));

    println!("Before a deploy");
    let report = subscriptions.compare().await?;
    step("the job of the deploy fails", report.has_errors(), "true")?;
    print!("{report}");
    let report = report.to_string();
    let lines = report.lines().filter(|line| line.starts_with("error: "));
    step("errors", lines.count(), "2")?;

    println!("It was deployed anyway");
    let paid = TestDelivery::new(&provider)
        .uri("/webhooks/stripe")
        .event_type("invoice.paid");
    let answer = send(&app, &paid).await?;
    step(
        "an invoice is paid, and nothing fails",
        answer,
        "200 processed",
    )?;
    let recovery = recovery.with(subscriptions).spawn(app);
    wait_until(
        &pool,
        "exists (select from idempotent_webhook.problems where is_told)",
    )
    .await?;
    let all = || told.lock().map(|told| told.join(", ")).unwrap_or_default();
    step("reported", all(), "subscription differs: begun")?;
    let differences = differences(&pool).await?;
    for difference in &differences {
        println!("    {difference}");
    }
    step("differences in the table", differences.len(), "2")?;

    println!("Somebody subscribes to disputes, and gives the endpoint a version");
    *endpoint.lock().await = set_up(
        Some("2025-09-30.clover"),
        ["invoice.paid", "charge.dispute.created"],
    );
    wait_until(
        &pool,
        "exists (select from idempotent_webhook.subscriptions where differences = '{}')",
    )
    .await?;
    // The next check for problems, within half a minute, reports the difference.
    wait_until(
        &pool,
        "not exists (select from idempotent_webhook.problems)",
    )
    .await?;
    step(
        "reported",
        all(),
        "subscription differs: begun, subscription differs: over",
    )?;

    recovery.stop().await;
    Ok(())
}

async fn differences(pool: &PgPool) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar("select unnest(differences) from idempotent_webhook.subscriptions")
        .fetch_all(pool)
        .await
}

async fn wait_until(pool: &PgPool, condition: &'static str) -> playground::Result<()> {
    let holds = async {
        let sql = format!("select {condition}");
        loop {
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.clone()));
            if query.fetch_one(pool).await? {
                return Ok::<_, sqlx::Error>(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, holds).await {
        Ok(held) => Ok(held?),
        Err(_) => Err(format!("Not within {PATIENCE:?}: {condition}").into()),
    }
}
