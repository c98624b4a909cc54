//! The job, and the worker that performs it.

use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, TaskHandler, Worker, WorkerBuildError, WorkerContext,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgPool;

/// The schema of the engine's tables.
pub const SCHEMA: &str = "graphile_worker";

/// Has an order shipped.
#[derive(Deserialize, Serialize)]
pub struct Ship {
    pub order: String,
    pub idempotency_key: String,
}

impl Ship {
    /// How often it is attempted.
    pub fn spec() -> JobSpec {
        JobSpec {
            // The waits between 12 attempts add up to 16 hours. Those between the 25 of
            // the default are four days, and an API that forgets keys after one, as Stripe
            // may, would take the last attempts for new requests.
            max_attempts: Some(12),
            ..JobSpec::default()
        }
    }
}

impl TaskHandler for Ship {
    const IDENTIFIER: &'static str = "ship";

    /// May run more than once for one job: a worker can die between the carrier's answer
    /// and the moment when the job is marked as done.
    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        match context.get_ext::<Carrier>() {
            Some(carrier) => carrier.ship(&self).await.map_err(|e| e.to_string()),
            None => Err("the worker has no carrier".to_owned()),
        }
    }
}

/// A client of the outside API.
#[derive(Clone, Debug)]
pub struct Carrier {
    url: String,
    client: reqwest::Client,
}

impl Carrier {
    pub fn new(url: String) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .build()?;
        Ok(Self { url, client })
    }

    async fn ship(&self, ship: &Ship) -> reqwest::Result<()> {
        self.client
            .post(format!("{}/shipments", self.url))
            .header("Idempotency-Key", &ship.idempotency_key)
            .json(&json!({ "order": ship.order }))
            .send()
            .await?
            .error_for_status()?;
        Ok(())
    }
}

/// A worker for these jobs. Give it another pool than the webhooks have: they must not wait for jobs.
pub async fn worker(pool: PgPool, carrier: Carrier) -> Result<Worker, WorkerBuildError> {
    WorkerOptions::default()
        .pg_pool(pool)
        .schema(SCHEMA)
        .concurrency(4)
        .define_job::<Ship>()
        .add_extension(carrier)
        // Without these four lines, a job whose worker was killed stays locked for four
        // hours. With them it is given to another once the worker has been silent for five
        // seconds. If it lives after all, two run the job at once, and the key makes that harmless.
        .heartbeat_interval(Duration::from_secs(1))
        .sweep_interval(Duration::from_secs(1))
        .sweep_threshold(Duration::from_secs(5))
        .recovery_delay(Duration::ZERO)
        // The caller decides when it ends.
        .listen_os_shutdown_signals(false)
        .init()
        .await
}
