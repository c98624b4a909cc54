//! Guarantee V4: an application with a deduplication table of its own moves to the layer, as the guide describes, while
//! deliveries arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, presets};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{blocks, page};
use crate::support::{Database, assert_rows, github, insert_effect, secret, send};

pub const PROCESSED_EVENTS: &str = "
    create table processed_events (
        event_id text primary key,
        created_at timestamptz not null default now()
    )
";

/// The version without the layer. Its handler writes to a deduplication table in the same transaction as the effects.
pub fn by_hand(pool: PgPool) -> Router {
    let handler = async |State(pool): State<PgPool>, headers: HeaderMap| {
        let id = headers["x-github-delivery"].to_str().unwrap();
        let mut tx = pool.begin().await?;
        let insert = "insert into processed_events (event_id) values ($1) on conflict do nothing";
        let inserted = sqlx::query(insert).bind(id).execute(&mut *tx).await?;
        if inserted.rows_affected() == 1 {
            sqlx::query("insert into effects (delivery_id) values ($1)")
                .bind(id)
                .execute(&mut *tx)
                .await?;
            sleep(Duration::from_millis(2)).await;
        }
        tx.commit().await?;
        Ok::<_, HandlerError>([("x-webhook-outcome", "before")])
    };
    Router::new().route("/", post(handler)).with_state(pool)
}

fn layer(pool: PgPool) -> IdempotentWebhook {
    IdempotentWebhook::new(pool, "billing", presets::github(secret()))
        .database_timeout(Duration::from_secs(20))
        .in_flight_timeout(Duration::from_secs(20))
}

/// The version of step 2, which uses both tables.
pub fn with_both(pool: PgPool) -> Router {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        let insert = "insert into processed_events (event_id) values ($1) on conflict do nothing";
        let inserted = sqlx::query(insert)
            .bind(delivery.id())
            .execute(&mut *tx)
            .await?;
        if inserted.rows_affected() == 1 {
            insert_effect(&mut tx, &delivery).await?;
        }
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    Router::new().route("/", post(handler).layer(layer(pool)))
}

/// The version of step 4.
pub fn with_the_layer(pool: PgPool) -> Router {
    Router::new().route("/", post(crate::support::write_effect).layer(layer(pool)))
}

/// Sends deliveries for as long as these processes run: each to all processes at the same time, and earlier ones again.
fn traffic(routers: Vec<Router>, next: Arc<AtomicU32>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let new = next.fetch_add(1, Ordering::Relaxed);
            let mut sending = Vec::new();
            for id in [new, new / 2, new.saturating_sub(30)] {
                for router in &routers {
                    let (router, id) = (router.clone(), id.to_string());
                    sending.push(tokio::spawn(async move {
                        send(&router, github(&id, "{}")).await.status
                    }));
                }
            }
            for sent in sending {
                assert_eq!(sent.await.unwrap(), 200);
            }
        }
    })
}

/// A series of rolling deploys, with deliveries all the time.
pub struct Deploys {
    next: Arc<AtomicU32>,
    running: JoinHandle<()>,
}

impl Deploys {
    pub async fn begin(first: Router) -> Self {
        let next = Arc::new(AtomicU32::new(0));
        let running = traffic(vec![first], next.clone());
        let deploys = Self { next, running };
        deploys.until_more_came().await;
        deploys
    }

    /// Replaces the running processes with processes that serve these routers.
    pub async fn deploy(&mut self, routers: [Router; 2]) {
        self.running.abort();
        assert!((&mut self.running).await.unwrap_err().is_cancelled());
        self.running = traffic(routers.into(), self.next.clone());
        self.until_more_came().await;
    }

    async fn until_more_came(&self) {
        let until = self.next.load(Ordering::Relaxed) + 60;
        while self.next.load(Ordering::Relaxed) < until {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the senders, and sends every delivery once more, because some were still under way. Returns how many
    /// deliveries there were.
    pub async fn end(self, last: Router) -> i64 {
        self.running.abort();
        let _ = self.running.await;
        let sent = self.next.load(Ordering::Relaxed);
        for id in 0..sent {
            assert_eq!(send(&last, github(&id.to_string(), "{}")).await.status, 200);
        }
        assert!(sent >= 300, "{sent}");
        i64::from(sent)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v4_nothing_runs_twice_or_is_lost_while_an_application_moves_in() {
    let database = Database::new().await;
    database.run(PROCESSED_EVENTS).await;
    let take_over = blocks(&page("moving_in.md"), "sql")[0].to_owned();
    let pool = async || database.another_pool(4).await;

    let mut deploys = Deploys::begin(by_hand(pool().await)).await;
    // During a rolling deploy, one process of each version runs.
    let both = [by_hand(pool().await), with_both(pool().await)];
    deploys.deploy(both).await;
    let both = [with_both(pool().await), with_both(pool().await)];
    deploys.deploy(both).await;
    database.run(&take_over).await;
    let both = [with_both(pool().await), with_the_layer(pool().await)];
    deploys.deploy(both).await;
    let both = [with_the_layer(pool().await), with_the_layer(pool().await)];
    deploys.deploy(both).await;
    let sent = deploys.end(with_the_layer(pool().await)).await;

    assert_rows!(database, claims: sent, effects: sent);
    let taken_over: i64 = sqlx::query_scalar(
        "select count(*)
         from idempotent_webhook.deliveries
         join processed_events on event_id = delivery_id and created_at = received_at
         where endpoint = 'billing'",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert!(taken_over >= 60, "{taken_over}");
}
