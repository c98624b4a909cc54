//! Stripe payments, each inserted once with SeaORM.

use std::env;

use axum::{Router, http::StatusCode, routing::post};
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Secret, presets};
use sea_orm::{ActiveModelTrait, ConnectionTrait, Database, Set};
use tokio::net::TcpListener;

mod payment {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "payments")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub event_id: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

async fn paid(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    let payment = payment::ActiveModel {
        event_id: Set(delivery.id().to_string()),
    };
    // This insert commits with the claim. An insert with `&database` would not.
    payment.insert(&tx.sea_orm()).await?;
    Ok(StatusCode::OK)
}

const TABLE: &str = "create table if not exists payments (event_id text primary key)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Database::connect(env::var("DATABASE_URL")?).await?;
    // The layer shares SeaORM's pool.
    let pool = database.get_postgres_connection_pool().clone();
    idempotent_webhook::migrate(&pool).await?;
    database.execute_unprepared(TABLE).await?;

    let secret = Secret::new(env::var("STRIPE_WEBHOOK_SECRET")?)?;
    let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret));
    let app: Router = Router::new().route("/webhooks/stripe", post(paid).layer(stripe));

    let port = env::var("PORT").unwrap_or("3000".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
