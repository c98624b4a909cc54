//! Deliveries that are kept: what the tests say of them by name.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::recovery::RecoveryTask;
use idempotent_webhook::{DedupeTx, Delivery, Endpoint, HandlerError, Keep, Recovery};
use sqlx::PgPool;

use super::database::Database;
use super::test_app::{TestApp, insert_effect};

pub const SOON: Duration = Duration::from_millis(20);

pub const NOTHING_KEPT: &str = "not exists (select from idempotent_webhook.kept_deliveries)
     and not exists (select from idempotent_webhook.kept_requests)";

pub const ONE_DEAD: &str =
    "exists (select from idempotent_webhook.kept_deliveries where state = 'dead')";

/// A recovery that looks for work of other processes often.
pub fn recovery(pool: &PgPool) -> Recovery {
    Recovery::new(pool.clone())
        .concurrency(2)
        .poll_interval(Duration::from_millis(200))
}

/// Keeps what failed, for four attempts in all.
pub fn keep(recovery: &Recovery) -> Keep {
    Keep::failed(recovery).retry_delays([SOON, SOON, SOON])
}

/// Runs what the application has kept.
pub fn recover(app: &TestApp) -> RecoveryTask {
    app.recovery.clone().spawn(app.router.clone())
}

pub fn endpoint(app: &TestApp) -> Endpoint {
    Endpoint::new(app.database.pool.clone(), "test")
}

/// What is kept of one delivery.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Kept {
    pub state: String,
    pub attempts: i32,
    /// Attempts of the schedule.
    pub retries: i32,
}

/// The rows of kept deliveries.
pub trait Stored {
    /// The only one that is kept.
    fn kept(&self) -> impl Future<Output = Kept>;

    /// Has all of them due now.
    fn make_due(&self) -> impl Future<Output = ()>;

    /// The attempts that are under way were taken long ago.
    fn age_takes(&self) -> impl Future<Output = ()>;
}

impl Stored for Database {
    async fn kept(&self) -> Kept {
        sqlx::query_as("select state, attempts, retries from idempotent_webhook.kept_deliveries")
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    async fn make_due(&self) {
        self.run("update idempotent_webhook.kept_deliveries set next_attempt_at = now()")
            .await;
    }

    async fn age_takes(&self) {
        self.run(
            "update idempotent_webhook.kept_deliveries
             set taken_at = now() - interval '1 minute'
             where taken_at is not null",
        )
        .await;
    }
}

pub type Answered = Pin<Box<dyn Future<Output = Result<StatusCode, HandlerError>> + Send>>;

/// A handler that writes one effect and fails a number of times, at whatever delivery. It notes the
/// attempt of each run.
#[derive(Clone, Default)]
pub struct Failing {
    left: Arc<AtomicU32>,
    attempts: Arc<Mutex<Vec<u32>>>,
}

impl Failing {
    pub fn times(times: u32) -> Self {
        Self {
            left: Arc::new(times.into()),
            attempts: Arc::default(),
        }
    }

    pub fn handler(
        &self,
    ) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
        let this = self.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let this = this.clone();
            Box::pin(async move {
                this.attempts.lock().unwrap().push(delivery.attempt());
                insert_effect(&mut tx, &delivery).await?;
                let left = |left: u32| left.checked_sub(1);
                match this
                    .left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                {
                    Ok(_) => Err(HandlerError::new("not yet")),
                    Err(_) => Ok(StatusCode::OK),
                }
            })
        }
    }

    pub fn attempts(&self) -> Vec<u32> {
        self.attempts.lock().unwrap().clone()
    }
}
