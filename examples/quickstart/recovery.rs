//! Routes that keep deliveries, each in one of the possible ways, so that recovery runs them again.

use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use idempotent_webhook::recovery::{Filter, KeptDelivery};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, LateClaim, Recovery,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::application::book;
use crate::senders::Sender;

/// How many kept deliveries are listed for each endpoint.
const LISTED: u32 = 1000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The endpoints, their senders, and which deliveries each one keeps.
const ENDPOINTS: [(&str, &str, Set); 5] = [
    ("kept", "github", Keep::failed),
    ("acknowledged", "shopify", |recovery| {
        Keep::failed(recovery).acknowledge()
    }),
    ("all", "github", |recovery| {
        Keep::all(recovery).processed_for(DAY)
    }),
    ("accepted", "acme", Keep::accepted),
    (LATE, "github", Keep::all),
];

/// The endpoint with a late claim: its handler claims the delivery itself.
const LATE: &str = "late";

type Set = fn(&Recovery) -> Keep;

/// The delays between attempts, as in `RECOVERY_DELAYS=100ms,2s,1m`. The default is short, for the demonstration.
fn delays() -> Result<Vec<Duration>, String> {
    match std::env::var("RECOVERY_DELAYS") {
        Ok(list) => list.split(',').map(parse).collect(),
        Err(_) => Ok(vec![Duration::from_millis(500); 5]),
    }
}

fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("RECOVERY_DELAYS: {text:?} is not a time such as 100ms, 2s or 1m");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err(wrong()),
    }
}

/// The routes `/recovery/<endpoint>`, `GET /recovery`, which lists the kept deliveries that are not processed, and
/// `/recovery/reprocess`.
pub fn router(pool: &PgPool, senders: &[Sender], recovery: &Recovery) -> Result<Router, String> {
    let delays = delays()?;
    let mut router = Router::new()
        .route("/recovery", get(list))
        .route("/recovery/reprocess", post(reprocess));
    for (endpoint, sender, set) in ENDPOINTS {
        let Some(sender) = senders.iter().find(|of| of.name() == sender) else {
            continue;
        };
        let layer = IdempotentWebhook::new(pool.clone(), endpoint, sender.provider())
            .keep(set(recovery).retry_delays(delays.clone()));
        let route = match endpoint {
            LATE => post(receive_late).layer(layer.late_claim()),
            _ => post(receive).layer(layer),
        };
        router = router.route(&format!("/recovery/{endpoint}"), route);
    }
    Ok(router.with_state(pool.clone()))
}

/// The body of a delivery, which tells the handler what to do.
#[derive(Deserialize)]
struct Asked {
    /// Fail at this many attempts.
    #[serde(default)]
    fail_times: i64,
    /// Abort the process at this many attempts.
    #[serde(default)]
    abort_times: i64,
    /// Take this long.
    #[serde(default)]
    sleep_ms: u64,
}

impl Asked {
    /// Counts the attempt, sleeps, and aborts the process if it should. Returns the number of the attempt.
    async fn begin(&self, pool: &PgPool, delivery: &Delivery) -> sqlx::Result<i64> {
        // This uses the pool, because the count must survive rollbacks.
        let attempts: i64 = sqlx::query_scalar(
            "insert into attempts as known (endpoint, delivery_id, attempts)
             values ($1, $2, 1)
             on conflict (endpoint, delivery_id) do update
             set attempts = known.attempts + 1
             returning attempts",
        )
        .bind(delivery.endpoint())
        .bind(delivery.id())
        .fetch_one(pool)
        .await?;
        tokio::time::sleep(Duration::from_millis(self.sleep_ms)).await;
        if attempts <= self.abort_times {
            std::process::abort();
        }
        Ok(attempts)
    }

    /// Fails, if the delivery asks for that.
    fn end(&self, attempts: i64) -> Result<(), HandlerError> {
        if attempts <= self.fail_times {
            let reason = format_args!("it was asked to fail at attempt {attempts}");
            return Err(HandlerError::new(reason));
        }
        Ok(())
    }
}

async fn receive(
    State(pool): State<PgPool>,
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(asked): Json<Asked>,
) -> Result<StatusCode, HandlerError> {
    let attempts = asked.begin(&pool, &delivery).await?;
    book(&mut tx, &delivery).await?;
    asked.end(attempts)?;
    Ok(StatusCode::OK)
}

/// A handler with a late claim: it works before its claim, like a handler that calls an API first.
async fn receive_late(
    State(pool): State<PgPool>,
    claim: LateClaim,
    delivery: Delivery,
    Json(asked): Json<Asked>,
) -> Result<StatusCode, HandlerError> {
    let attempts = asked.begin(&pool, &delivery).await?;
    asked.end(attempts)?;
    let mut tx = claim.begin().await?;
    book(&mut tx, &delivery).await?;
    Ok(StatusCode::OK)
}

#[derive(Serialize)]
struct Listed {
    endpoint: &'static str,
    delivery_id: String,
    state: &'static str,
    attempts: u32,
    reason: Option<String>,
}

impl Listed {
    fn new(endpoint: &'static str, kept: KeptDelivery) -> Self {
        Self {
            endpoint,
            delivery_id: kept.delivery_id,
            state: kept.state.as_str(),
            attempts: kept.attempts,
            reason: kept.reason,
        }
    }
}

async fn list(State(pool): State<PgPool>) -> Result<Json<Vec<Listed>>, StatusCode> {
    let mut listed = Vec::new();
    for (endpoint, ..) in ENDPOINTS {
        let kept = Endpoint::new(pool.clone(), endpoint)
            .kept(&Filter::new(), None, LISTED)
            .await
            .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        listed.extend(kept.into_iter().map(|kept| Listed::new(endpoint, kept)));
    }
    Ok(Json(listed))
}

/// A processed delivery whose request is still stored.
#[derive(Deserialize)]
struct Processed {
    endpoint: String,
    delivery_id: String,
}

#[derive(Serialize)]
struct Reprocessed {
    reprocessed: u64,
}

/// Makes a processed delivery run again. In production, protect such a route.
async fn reprocess(
    State(pool): State<PgPool>,
    Query(processed): Query<Processed>,
) -> Result<Json<Reprocessed>, StatusCode> {
    let reprocessed = Endpoint::new(pool, processed.endpoint)
        .reprocess(&processed.delivery_id)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(Reprocessed {
        reprocessed: (reprocessed == idempotent_webhook::recovery::Reprocessed::Due).into(),
    }))
}
