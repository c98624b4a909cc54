//! The features for handlers beyond the claim. Each one has its own handler.
//!
//!     cargo run --example handlers
//!
//! No server has to be running: the example creates its own database, on the server of
//! `DATABASE_URL` if that is set, and otherwise on a PostgreSQL server that it starts.

mod jobs;
mod pushes;
mod refunds;
mod subscriptions;

#[path = "../playground/mod.rs"]
mod playground;

use std::process::ExitCode;

use sqlx::PgPool;

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    refunds::example(&pool).await?;
    jobs::example(&pool).await?;
    subscriptions::example(&pool).await?;
    pushes::example(&pool).await
}
