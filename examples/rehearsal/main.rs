//! The job of a deploy. It rehearses deliveries that the old version has processed: it runs them through both versions,
//! and rolls everything back. It exits with status 1 if a delivery fails with the new version, or if the two versions
//! do not write the same rows.
//!
//!     cargo run --example rehearsal
//!     cargo run --example rehearsal -- --broken
//!     cargo run --example rehearsal -- --stopped
//!     cargo run --example rehearsal -- --json
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts.

#[path = "../playground/mod.rs"]
mod playground;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Json;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Rehearsal, RehearsalReport};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Provider, Recovery, Secret, presets,
};
use playground::{send, step};
use serde::Deserialize;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How many deliveries the old version has processed.
const DELIVERIES: usize = 1000;

fn github() -> playground::Result<Provider> {
    Ok(presets::github(Secret::new("a secret")?))
}

/// The application, with the handler of one of its versions.
fn app<H, T>(pool: &PgPool, handler: H) -> playground::Result<(Router, Recovery)>
where
    H: Handler<T, ()>,
    T: 'static,
{
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool.clone(), "deployments", github()?)
        .keep(Keep::all(&recovery).processed_for(WEEK))
        .rehearsable();
    let app = Router::new().route("/github", post(handler).layer(layer));
    Ok((app, recovery))
}

/// The old version accepts any body.
async fn old(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    deploy(&mut tx, &delivery, "main").await
}

#[derive(Deserialize)]
struct Event {
    r#ref: Option<String>,
}

/// The new version reads the body.
async fn new(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<Event>,
) -> Result<StatusCode, HandlerError> {
    deploy(&mut tx, &delivery, event.r#ref.as_deref().unwrap_or("main")).await
}

#[derive(Deserialize)]
struct Push {
    r#ref: String,
}

/// This version treats every event as a push. The rehearsal of this version alone finds that mistake.
async fn broken(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(push): Json<Push>,
) -> Result<StatusCode, HandlerError> {
    deploy(&mut tx, &delivery, &push.r#ref).await
}

#[derive(Deserialize)]
struct Renamed {
    branch: Option<String>,
}

/// This version reads a field that no push has, so it answers 200 and writes nothing. Only a comparison with the old
/// version finds that mistake.
async fn stopped(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<Renamed>,
) -> Result<StatusCode, HandlerError> {
    match (delivery.event_type(), event.branch) {
        (Some("push"), None) => Ok(StatusCode::OK),
        (_, branch) => deploy(&mut tx, &delivery, branch.as_deref().unwrap_or("main")).await,
    }
}

async fn deploy(
    tx: &mut DedupeTx,
    delivery: &Delivery,
    branch: &str,
) -> Result<StatusCode, HandlerError> {
    // The deployment of a processed delivery already exists. With `do nothing`, a rehearsal would write nothing, which
    // looks like a handler that no longer writes.
    let deployed = "insert into deployments values ($1, $2)
        on conflict (delivery_id) do update set branch = excluded.branch";
    sqlx::query(deployed)
        .bind(delivery.id())
        .bind(branch)
        .execute(&mut **tx)
        .await?;
    Ok(StatusCode::OK)
}

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    sqlx::query("create table deployments (delivery_id text primary key, branch text)")
        .execute(&pool)
        .await?;
    receive(&pool).await?;

    // From here on, this is the code of the job. On the job's pool, writes outside the handler's transaction fail.
    let options = pool.connect_options().as_ref().clone();
    let reading = options.options([("default_transaction_read_only", "on")]);
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .connect_lazy_with(reading);
    let began = Instant::now();
    // In a real deploy, the running version writes this report to a file.
    let before = serde_json::to_string(&rehearse(self::app(&pool, old)?).await?)?;
    // The next version reads the file.
    let before: RehearsalReport = serde_json::from_str(&before)?;
    let next = if is_asked("--broken") {
        self::app(&pool, broken)?
    } else if is_asked("--stopped") {
        self::app(&pool, stopped)?
    } else {
        self::app(&pool, new)?
    };
    let report = rehearse(next).await?;
    let compared = report.compare(&before);
    if is_asked("--json") {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report}\n\n{compared}\nin {:.1?}", began.elapsed());
    }
    pool.close().await;
    match report.passed() && compared.passed() {
        true => Ok(()),
        false => Err("The rehearsal has not passed.".into()),
    }
}

async fn rehearse((app, recovery): (Router, Recovery)) -> sqlx::Result<RehearsalReport> {
    recovery.rehearse(&app, &Rehearsal::new()).await
}

fn is_asked(flag: &str) -> bool {
    std::env::args().any(|argument| argument == flag)
}

/// Sends last week's deliveries to the old version.
async fn receive(pool: &PgPool) -> playground::Result<()> {
    let (app, _) = app(pool, old)?;
    for number in 0..DELIVERIES {
        let (event_type, body) = match number % 4 {
            0 => ("release", r#"{"release":{"tag_name":"v1"}}"#),
            _ => ("push", r#"{"ref":"main"}"#),
        };
        let sent = TestDelivery::new(&github()?)
            .uri("/github")
            .id(format!("delivery-{number}"))
            .event_type(event_type)
            .body(body);
        send(&app, &sent).await?;
    }
    let processed: i64 = sqlx::query_scalar("select count(*) from deployments")
        .fetch_one(pool)
        .await?;
    if is_asked("--json") {
        return Ok(());
    }
    step("processed by the old version", processed, "1000")
}
