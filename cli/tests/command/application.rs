//! An application behind the claiming layer, with a real Postgres.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Provider};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

static SERVER: OnceCell<ThrowawayPostgres> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// An application with its own database, whose handler writes one effect for each delivery.
pub struct Application {
    pub url: String,
    pool: PgPool,
}

/// How many deliveries are claimed, and how many effects the handler has written.
#[derive(Debug, PartialEq, Eq)]
pub struct Rows {
    pub claims: i64,
    pub effects: i64,
}

impl Application {
    pub async fn serve(provider: Provider) -> Self {
        let pool = database().await;
        let layer = IdempotentWebhook::new(pool.clone(), "test", provider);
        let router = Router::new().route("/", post(write_effect).layer(layer));
        let url = serve(router).await;
        Self { url, pool }
    }

    /// Closes the layer's pool, so that the layer no longer reaches Postgres.
    pub async fn close_pool(&self) {
        self.pool.close().await;
    }

    pub async fn rows(&self) -> Rows {
        let (claims, effects) = sqlx::query_as(
            "select
                (select count(*) from idempotent_webhook.deliveries),
                (select count(*) from effects)",
        )
        .fetch_one(&self.pool)
        .await
        .unwrap();
        Rows { claims, effects }
    }
}

async fn write_effect(mut tx: DedupeTx, delivery: Delivery) -> Result<(), StatusCode> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(delivery.id().as_str())
        .execute(&mut *tx)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(())
}

pub async fn database() -> PgPool {
    let server = SERVER.get_or_init(async || {
        let server = ThrowawayPostgres::start(Durability::Lossy).await;
        server.unwrap_or_else(|error| panic!("{error}"))
    });
    let server = server.await;
    let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let mut admin = server.options("postgres").connect().await.unwrap();
    let create = format!("create database {name}");
    admin.execute(AssertSqlSafe(create)).await.unwrap();
    let pool = PgPool::connect_lazy_with(server.options(&name));
    idempotent_webhook::migrate(&pool).await.unwrap();
    let effects = "create table effects (delivery_id text)";
    pool.execute(effects).await.unwrap();
    pool
}

/// Serves a router, and returns its address.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}
