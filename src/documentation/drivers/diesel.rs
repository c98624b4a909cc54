//! Stripe payments, each inserted once with Diesel, with recovery and an archive.

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use diesel::prelude::*;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use idempotent_webhook::{
    Delivery, HandlerError, IdempotentWebhook, Keep, LateClaim, Recovery, Retention, Secret,
    presets,
};
use serde::Deserialize;
use sqlx::PgPool;
use tokio::net::TcpListener;

diesel::table! {
    payments (event_id) {
        event_id -> Text,
        amount -> BigInt,
    }
}

#[diesel::declare_sql_function]
extern "SQL" {
    #[sql_name = "idempotent_webhook.claim"]
    fn claim_delivery(
        endpoint: diesel::sql_types::Text,
        tenant: diesel::sql_types::Text,
        delivery_id: diesel::sql_types::Text,
        event_type: diesel::sql_types::Nullable<diesel::sql_types::Text>,
        take: diesel::sql_types::Nullable<diesel::sql_types::BigInt>,
    ) -> diesel::sql_types::Bool;
}

#[derive(Deserialize)]
struct Event {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: PaymentIntent,
}

#[derive(Deserialize)]
struct PaymentIntent {
    amount: i64,
}

/// The wait for a claim ends before Stripe gives up. Postgres ends the claim of a frozen process, or of a handler that
/// has panicked and left its transaction open in the pool.
const LIMITS: &str = "set local lock_timeout = '5s';
    set local idle_in_transaction_session_timeout = '5s'";

async fn paid(
    State(pool): State<Pool<AsyncPgConnection>>,
    claim: LateClaim,
    delivery: Delivery,
    Json(event): Json<Event>,
) -> Result<StatusCode, HandlerError> {
    let take = claim.take_number();
    let mut connection = pool.get().await?;
    let is_claimed = connection
        .transaction(async |connection| {
            connection.batch_execute(LIMITS).await?;
            let id = delivery.id().as_str();
            let (endpoint, tenant) = (delivery.endpoint(), delivery.key_tenant());
            let claim = claim_delivery(endpoint, tenant, id, delivery.event_type(), take);
            let is_claimed: bool = diesel::select(claim).get_result(connection).await?;
            if is_claimed {
                let amount = payments::amount.eq(event.data.object.amount);
                diesel::insert_into(payments::table)
                    .values((payments::event_id.eq(id), amount))
                    .execute(connection)
                    .await?;
            }
            QueryResult::Ok(is_claimed)
        })
        .await?;
    if is_claimed {
        // The layer checks that the claim is there, and answers 500 if it is not.
        claim.committed();
    }
    Ok(StatusCode::OK)
}

const TABLE: &str =
    "create table if not exists payments (event_id text primary key, amount bigint not null)";
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("DATABASE_URL")?;
    // The pool for the layer and for recovery.
    let layers = PgPool::connect(&url).await?;
    idempotent_webhook::migrate(&layers).await?;

    let connections = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
    let pool = Pool::builder(connections).build()?;
    pool.get().await?.batch_execute(TABLE).await?;

    let secret = Secret::new(env::var("STRIPE_WEBHOOK_SECRET")?)?;
    let recovery = Recovery::new(layers.clone());
    let stripe = IdempotentWebhook::new(layers.clone(), "billing", presets::stripe(secret))
        .only(["payment_intent.succeeded"])
        .late_claim()
        .keep(Keep::all(&recovery).processed_for(MONTH));
    let app = Router::new()
        .route("/webhooks/stripe", post(paid).layer(stripe))
        .with_state(pool);
    recovery
        .with(Retention::new(layers, MONTH))
        .spawn(app.clone());

    let port = env::var("PORT").unwrap_or("3000".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
