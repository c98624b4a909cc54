//! A handler breaks, its provider never retries, and nothing is lost: deliveries are kept and run again, an operator
//! retries a dead delivery, a slow delivery is accepted before its handler runs, and a wrong effect of a handler is
//! repaired.
//!
//!     cargo run --example recovery
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts.

mod playground;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, Recovery, Secret, presets,
};
use playground::{send, step};
use sqlx::PgPool;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// In production, use the default, 5 seconds.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Whether the deployment API is down.
#[derive(Clone, Default)]
struct Broken(Arc<AtomicBool>);

async fn push(
    State(Broken(broken)): State<Broken>,
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into deployments (delivery_id, attempt) values ($1, $2)")
        .bind(delivery.id())
        .bind(delivery.attempt().cast_signed())
        .execute(&mut *tx)
        .await?;
    if broken.load(Ordering::Relaxed) {
        return Err(HandlerError::new("the deployment API is down"));
    }
    Ok(StatusCode::OK)
}

/// In reality, such a handler takes longer than the three seconds that Slack waits.
async fn command(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    if delivery.is_reprocessed() {
        sqlx::query("delete from deployments where delivery_id = $1")
            .bind(delivery.id())
            .execute(&mut *tx)
            .await?;
    }
    sqlx::query("insert into deployments (delivery_id, attempt) values ($1, $2)")
        .bind(delivery.id())
        .bind(delivery.attempt().cast_signed())
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    sqlx::query("create table deployments (delivery_id text, attempt int)")
        .execute(&pool)
        .await?;
    let broken = Broken::default();
    let github = presets::github(Secret::new("a secret")?);
    let slack = presets::slack(Secret::new("another secret")?);
    let recovery = Recovery::new(pool.clone());
    // In production, use the default delays, which add up to days.
    let keep = Keep::failed(&recovery).retry_delays([Duration::from_millis(200); 2]);
    let pushes = IdempotentWebhook::new(pool.clone(), "pushes", github.clone()).keep(keep);
    // The requests of processed deliveries stay for a day, so that an operator can run them again.
    let keep = Keep::accepted(&recovery).processed_for(DAY);
    let commands = IdempotentWebhook::new(pool.clone(), "commands", slack.clone()).keep(keep);
    let app = Router::new()
        .route("/github", post(push).layer(pushes))
        .route("/slack", post(command).layer(commands))
        .with_state(broken.clone());
    let recovery = recovery.poll_interval(POLL_INTERVAL).spawn(app.clone());
    let push = |id: &str| TestDelivery::new(&github).uri("/github").id(id);
    let endpoint = Endpoint::new(pool.clone(), "pushes");

    println!("The handler breaks");
    broken.0.store(true, Ordering::Relaxed);
    let answer = send(&app, &push("a")).await?;
    step("a push, which GitHub never sends again", answer, "500 kept")?;
    let dead = Filter::new().state(KeptState::Dead);
    while endpoint.kept(&dead, None, 1).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let kept = endpoint.kept(&dead, None, 1).await?.remove(0);
    step(
        "its state after the last attempt",
        kept.state.as_str(),
        "dead",
    )?;
    step("attempts", kept.attempts, "3")?;
    let reason = kept.reason.unwrap_or_default();
    step("the reason", reason, "the deployment API is down")?;

    println!("The handler is fixed, and an operator retries");
    broken.0.store(false, Ordering::Relaxed);
    step("retried", endpoint.retry_all(&dead).await?.changed, "1")?;
    step(
        "deployments of the push",
        processed(&pool, "a").await?,
        "attempt 4",
    )?;

    println!("An outage ends before the last attempt");
    broken.0.store(true, Ordering::Relaxed);
    let answer = send(&app, &push("b")).await?;
    step("a push", answer, "500 kept")?;
    broken.0.store(false, Ordering::Relaxed);
    step(
        "deployments of the push",
        processed(&pool, "b").await?,
        "attempt 2",
    )?;
    let answer = send(&app, &push("b")).await?;
    step("GitHub's `Redeliver`, by hand", answer, "200 duplicate")?;

    println!("A handler takes longer than the provider waits");
    let slow = TestDelivery::new(&slack).uri("/slack").id("Ev1");
    step("a command", send(&app, &slow).await?, "200 accepted")?;
    step(
        "deployments of the command",
        processed(&pool, "Ev1").await?,
        "attempt 1",
    )?;

    println!("It turns out that the deployment was wrong");
    let today = Filter::new().processed(SystemTime::now() - DAY..);
    let commands = Endpoint::new(pool.clone(), "commands");
    step(
        "reprocessed",
        commands.reprocess_all(&today).await?.changed,
        "1",
    )?;
    while processed(&pool, "Ev1").await? == "attempt 1" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    step(
        "deployments of the command",
        processed(&pool, "Ev1").await?,
        "attempt 2",
    )?;
    recovery.stop().await;
    Ok(())
}

/// Waits until a delivery has been processed, and returns the number of the attempt that processed it.
async fn processed(pool: &PgPool, id: &str) -> sqlx::Result<String> {
    loop {
        let attempt: Option<i32> =
            sqlx::query_scalar("select attempt from deployments where delivery_id = $1")
                .bind(id)
                .fetch_optional(pool)
                .await?;
        if let Some(attempt) = attempt {
            return Ok(format!("attempt {attempt}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
