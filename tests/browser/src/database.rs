use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::sync::OnceCell;

/// A separate database with the tables of the crate, on the server that the tests share.
pub struct Database {
    pub pool: PgPool,
}

static SERVER: OnceCell<ThrowawayPostgres> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

impl Database {
    pub async fn new() -> Self {
        let server = SERVER
            .get_or_init(async || {
                ThrowawayPostgres::start(Durability::Lossy)
                    .await
                    .unwrap_or_else(|error| panic!("{error}"))
            })
            .await;
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let mut admin = server.options("postgres").connect().await.unwrap();
        admin
            .execute(AssertSqlSafe(format!("create database {name}")))
            .await
            .unwrap();
        // While a test holds a lock, it loads pages, and the machine may be busy.
        let options = server.options(&name).options([("lock_timeout", "1min")]);
        let pool = PgPoolOptions::new()
            .max_connections(5)
            .connect_lazy_with(options);
        idempotent_webhook::migrate(&pool).await.unwrap();
        Self { pool }
    }
}
