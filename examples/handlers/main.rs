//! The features for handlers beyond the claim, each in a handler of its own.
//!
//!     cargo run --example handlers
//!
//! It needs nothing running: it makes a database of its own, on the server of `DATABASE_URL`
//! if that is set and on a PostgreSQL of its own otherwise.

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
