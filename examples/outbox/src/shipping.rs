//! The job, and the worker that runs it.

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

/// A job that ships an order.
#[derive(Deserialize, Serialize)]
pub struct Ship {
    pub order: String,
    pub idempotency_key: String,
}

impl Ship {
    /// The settings of the job, such as the number of attempts.
    pub fn spec() -> JobSpec {
        JobSpec {
            // The delays between 12 attempts add up to 16 hours. With the default of 25 attempts, the delays would add
            // up to four days. An API may forget idempotency keys after one day, as Stripe's may, and would then treat
            // the later attempts as new requests.
            max_attempts: Some(12),
            ..JobSpec::default()
        }
    }
}

impl TaskHandler for Ship {
    const IDENTIFIER: &'static str = "ship";

    /// This may run more than once for one job, because a worker can die after the carrier has answered and before the
    /// job is marked as done.
    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        match context.get_ext::<Carrier>() {
            Some(carrier) => carrier.ship(&self).await.map_err(|e| e.to_string()),
            None => Err("the worker has no carrier".to_owned()),
        }
    }
}

/// A client of the external API.
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

/// A worker for these jobs. Give it a pool of its own, so that webhooks do not wait for jobs.
pub async fn worker(pool: PgPool, carrier: Carrier) -> Result<Worker, WorkerBuildError> {
    WorkerOptions::default()
        .pg_pool(pool)
        .schema(SCHEMA)
        .concurrency(4)
        .define_job::<Ship>()
        .add_extension(carrier)
        // Without these four lines, a job whose worker was killed stays locked for four hours. With them, another
        // worker gets the job once the first worker has been silent for five seconds. If the first worker is still
        // alive, both run the job. The idempotency key makes that harmless.
        .heartbeat_interval(Duration::from_secs(1))
        .sweep_interval(Duration::from_secs(1))
        .sweep_threshold(Duration::from_secs(5))
        .recovery_delay(Duration::ZERO)
        // The caller decides when the worker stops.
        .listen_os_shutdown_signals(false)
        .init()
        .await
}
