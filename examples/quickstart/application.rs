//! The application: webhook routes, each with its own endpoint name, and a ledger that the handlers
//! write to.

use std::collections::HashSet;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use idempotent_webhook::{
    DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, JsonPath, Recovery, Source,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::recovery;
use crate::senders::Sender;

#[derive(Clone)]
pub struct Application {
    pool: PgPool,
    senders: Vec<Sender>,
    state: Arc<AppState>,
}

#[derive(Default)]
pub struct AppState {
    /// How often a handler has been called.
    runs: AtomicU32,
    /// The deliveries that were asked to fail once, and have failed.
    failed: Mutex<HashSet<String>>,
}

/// The part of an event that the demonstration reads. Real events have much more.
#[derive(Deserialize)]
struct Event {
    /// Makes the handler fail at the first attempt.
    #[serde(default)]
    fail_once: bool,
}

/// The webhook handler of the demonstration, on all routes. It writes one row to the ledger.
async fn receive(
    State(state): State<Arc<AppState>>,
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<Event>,
) -> Result<StatusCode, HandlerError> {
    state.runs.fetch_add(1, Ordering::Relaxed);
    book(&mut tx, &delivery).await?;

    if event.fail_once {
        let mut failed = state.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.insert(delivery.id().to_string()) {
            // The row above is rolled back before this answer is sent.
            return Err(HandlerError::new("it was asked to fail once"));
        }
    }
    Ok(StatusCode::OK)
}

/// Writes one row to the ledger.
pub async fn book(tx: &mut DedupeTx, delivery: &Delivery) -> sqlx::Result<()> {
    sqlx::query(
        "insert into ledger (endpoint, delivery_id, event_type, received_at)
         values ($1, $2, $3, now())",
    )
    .bind(delivery.endpoint())
    .bind(delivery.id())
    .bind(delivery.event_type())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The body of a delivery to the route on which the deliveries of one object run one at a time.
#[derive(Deserialize)]
struct Slow {
    /// How long the handler stays in its transaction.
    #[serde(default)]
    sleep_ms: u64,
}

/// When the handler started and finished, in Unix seconds by the clock of Postgres.
#[derive(Serialize, Deserialize)]
pub struct Span {
    pub began: f64,
    pub ended: f64,
}

async fn receive_serialized(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(slow): Json<Slow>,
) -> Result<Json<Span>, HandlerError> {
    let began = clock(&mut tx).await?;
    book(&mut tx, &delivery).await?;
    tokio::time::sleep(Duration::from_millis(slow.sleep_ms)).await;
    let ended = clock(&mut tx).await?;
    Ok(Json(Span { began, ended }))
}

async fn clock(tx: &mut DedupeTx) -> sqlx::Result<f64> {
    sqlx::query_scalar("select extract(epoch from clock_timestamp())::float8")
        .fetch_one(&mut **tx)
        .await
}

/// A handler that always fails.
async fn fail(_: DedupeTx) -> Result<StatusCode, HandlerError> {
    Err(HandlerError::new("it fails each time"))
}

#[derive(Serialize, sqlx::FromRow)]
struct Row {
    endpoint: String,
    delivery_id: String,
    event_type: Option<String>,
    received_at: String,
}

async fn ledger(State(pool): State<PgPool>) -> Result<Json<Vec<Row>>, StatusCode> {
    sqlx::query_as(
        "select endpoint, delivery_id, event_type, received_at::text as received_at
         from ledger
         order by ledger.received_at",
    )
    .fetch_all(&pool)
    .await
    .map(Json)
    .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

impl Application {
    pub async fn new(pool: PgPool) -> Result<Self, Box<dyn Error>> {
        // Several processes may start at the same moment.
        sqlx::raw_sql(
            "begin;
             select pg_advisory_xact_lock(hashtextextended('quickstart', 0));
             create table if not exists ledger (
                 endpoint text,
                 delivery_id text,
                 event_type text,
                 received_at timestamptz
             );
             create table if not exists attempts (
                 endpoint text,
                 delivery_id text,
                 attempts bigint,
                 primary key (endpoint, delivery_id)
             );
             commit",
        )
        .execute(&pool)
        .await?;
        Ok(Self {
            pool,
            senders: Sender::all()?,
            state: Arc::default(),
        })
    }

    /// A line for each secret, which says where it comes from.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        self.senders.iter().map(Sender::describe_secret)
    }

    pub fn sender(&self, provider: &str) -> Option<&Sender> {
        self.senders.iter().find(|sender| sender.name() == provider)
    }

    /// A signed request for each provider, ready to paste.
    pub fn curls(&self, address: SocketAddr) -> impl Iterator<Item = String> {
        self.senders.iter().map(move |sender| sender.curl(address))
    }

    pub fn router(&self, recovery: &Recovery) -> Result<Router, String> {
        let mut router = Router::new()
            .route("/ledger", get(ledger))
            .with_state(self.pool.clone());
        for sender in &self.senders {
            let name = sender.name();
            let layer = IdempotentWebhook::new(self.pool.clone(), name, sender.provider());
            let route = post(receive).layer(layer).with_state(self.state.clone());
            router = router.route(&format!("/webhooks/{name}"), route);
        }
        let router = router.merge(self.events()?).merge(self.serialized()?);
        Ok(router.merge(recovery::router(&self.pool, &self.senders, recovery)?))
    }

    /// A route with a handler for only some event types.
    fn events(&self) -> Result<Router, String> {
        let github = self.sender("github").ok_or("no sender github")?;
        let layer = IdempotentWebhook::new(self.pool.clone(), "events", github.provider());
        let events = Events::new()
            .on("push", receive)
            .on("pull_request.opened", receive)
            .on("issues.*", fail)
            .ignore_others();
        Ok(Router::new()
            .route("/events/github", post(events.layer(layer)))
            .with_state(self.state.clone()))
    }

    /// A route on which deliveries with the same `ref` run one at a time.
    fn serialized(&self) -> Result<Router, String> {
        let github = self.sender("github").ok_or("no sender github")?;
        let object: JsonPath = "$.ref".parse().map_err(|_| "no JSON path")?;
        let layer = IdempotentWebhook::new(self.pool.clone(), "serial", github.provider())
            .serialize_by(Source::json(object));
        Ok(Router::new().route("/serial/github", post(receive_serialized).layer(layer)))
    }

    /// How often the handler of a kept delivery has been called.
    pub async fn attempts(&self, delivery_id: &str) -> sqlx::Result<i64> {
        sqlx::query_scalar(
            "select coalesce(sum(attempts), 0)::int8 from attempts where delivery_id = $1",
        )
        .bind(delivery_id)
        .fetch_one(&self.pool)
        .await
    }

    /// How often a handler has been called since the last call of this function.
    pub fn take_runs(&self) -> u32 {
        self.state.runs.swap(0, Ordering::Relaxed)
    }

    pub async fn ledger_rows(&self, delivery_id: &str) -> sqlx::Result<i64> {
        sqlx::query_scalar("select count(*) from ledger where delivery_id = $1")
            .bind(delivery_id)
            .fetch_one(&self.pool)
            .await
    }
}
