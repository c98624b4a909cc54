//! An application with one handler, and a database for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{IdempotentWebhook, Provider, Secret, presets};
use sea_orm::{Database, DatabaseConnection};
use sqlx::{ConnectOptions, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::sync::OnceCell;
use tower::ServiceExt;

use crate::entity::TABLES;

static SERVER: OnceCell<ThrowawayPostgres> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

pub struct Application {
    pub router: Router,
    pub database: DatabaseConnection,
    provider: Provider,
}

/// A new database, as a connection of SeaORM.
pub async fn database() -> DatabaseConnection {
    let start = async || ThrowawayPostgres::start(Durability::Lossy).await.unwrap();
    let server = SERVER.get_or_init(start).await;
    let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let mut admin = server.options("postgres").connect().await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("create database {name}")))
        .execute(&mut admin)
        .await
        .unwrap();
    let url = server.options(&name).to_url_lossy();
    let database = Database::connect(url.as_str()).await.unwrap();
    let pool = database.get_postgres_connection_pool();
    idempotent_webhook::migrate(pool).await.unwrap();
    sqlx::raw_sql(TABLES).execute(pool).await.unwrap();
    database
}

impl Application {
    pub async fn new<H: Handler<T, ()>, T: 'static>(handler: H) -> Self {
        let database = database().await;
        let provider = presets::stripe(Secret::new("whsec_driver").unwrap());
        let pool = database.get_postgres_connection_pool().clone();
        let stripe = IdempotentWebhook::new(pool, "billing", provider.clone());
        Self {
            router: Router::new().route("/", post(handler).layer(stripe)),
            database,
            provider,
        }
    }

    pub fn delivery(&self) -> TestDelivery {
        TestDelivery::new(&self.provider).id("evt_1")
    }

    /// Delivers `evt_1`, and returns the status and the outcome.
    pub async fn deliver(&self) -> (u16, String) {
        let request = self.delivery().request::<Body>();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let outcome = response.headers()["x-webhook-outcome"].to_str().unwrap();
        (response.status().as_u16(), outcome.to_owned())
    }

    pub fn pool(&self) -> &PgPool {
        self.database.get_postgres_connection_pool()
    }

    async fn texts(&self, select: &'static str) -> Vec<String> {
        sqlx::query_scalar(select)
            .fetch_all(self.pool())
            .await
            .unwrap()
    }

    /// The claims that are committed.
    pub async fn claims(&self) -> Vec<String> {
        self.texts("select delivery_id from idempotent_webhook.deliveries")
            .await
    }

    /// Each payment as `event_id`, or `event_id: note`.
    pub async fn payments(&self) -> Vec<String> {
        self.texts("select concat_ws(': ', event_id, note) from payments order by 1")
            .await
    }

    /// Each line as `customer: article`.
    pub async fn lines(&self) -> Vec<String> {
        self.texts(
            "select customer || ': ' || article
             from lines join orders on orders.id = order_id
             order by 1",
        )
        .await
    }
}

pub fn processed() -> (u16, String) {
    (200, "processed".to_owned())
}

pub fn failed() -> (u16, String) {
    (500, "failed".to_owned())
}
