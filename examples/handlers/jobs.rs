//! Work after the commit: waking the worker for a job that the transaction has written.
//!
//! Work after the commit is done at most once. Here, that is no problem, because a worker that is
//! not woken finds the job the next time that it polls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, HandlerError, IdempotentWebhook, Secret, presets};
use sqlx::PgPool;
use tokio::sync::Mutex;

use crate::playground::{self, send, step};

#[derive(Clone)]
struct Worker {
    pool: PgPool,
    /// How many jobs the worker found each time that it was woken.
    found: Arc<Mutex<Vec<i64>>>,
}

impl Worker {
    async fn wake(self) -> sqlx::Result<()> {
        let jobs = sqlx::query_scalar("select count(*) from jobs")
            .fetch_one(&self.pool)
            .await?;
        self.found.lock().await.push(jobs);
        Ok(())
    }
}

#[derive(Clone)]
struct App {
    worker: Worker,
    /// Whether the next handler fails.
    fails: Arc<AtomicBool>,
}

async fn paid(State(app): State<App>, mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    // Before the commit, the worker would find nothing.
    tx.after_commit(app.worker.wake());
    sqlx::query("insert into jobs (what) values ('send the receipt')")
        .execute(&mut *tx)
        .await?;
    if app.fails.swap(false, Ordering::Relaxed) {
        return Err(HandlerError::new("it fails once"));
    }
    Ok(StatusCode::OK)
}

pub async fn example(pool: &PgPool) -> playground::Result<()> {
    sqlx::query("create table jobs (what text)")
        .execute(pool)
        .await?;
    let worker = Worker {
        pool: pool.clone(),
        found: Arc::default(),
    };
    let stripe = presets::stripe(Secret::new("whsec_stripe")?);
    let invoice = TestDelivery::new(&stripe).event_type("invoice.paid");
    let layer = IdempotentWebhook::new(pool.clone(), "payments", stripe);
    let app = Router::new()
        .route("/", post(paid).layer(layer.clone()))
        .with_state(App {
            worker: worker.clone(),
            fails: Arc::new(true.into()),
        });
    // Waits until no work is left, and shows the jobs that the worker has found.
    let found = async || {
        layer.drained().await;
        format!("{:?}", worker.found.lock().await)
    };

    println!("after_commit: a worker is woken for a job");
    let answer = send(&app, &invoice).await?;
    step("the handler fails", answer, "500 failed")?;
    step("jobs found at each wake-up", found().await, "[]")?;
    let answer = send(&app, &invoice).await?;
    step("the retry", answer, "200 processed")?;
    step("jobs found at each wake-up", found().await, "[1]")?;
    let answer = send(&app, &invoice).await?;
    step("another retry", answer, "200 duplicate")?;
    step("jobs found at each wake-up", found().await, "[1]")
}
