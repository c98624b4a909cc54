//! Events that arrive out of order: an event that is older than the last processed event is skipped and acknowledged.

use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, HandlerError, IdempotentWebhook, Recency, Secret, presets};
use serde::Deserialize;
use sqlx::PgPool;

use crate::playground::{self, send, step};

const SECRET: &str = "whsec_bm90IHNlY3JldA==";

#[derive(Deserialize)]
struct Changed {
    subscription: String,
    version: i64,
    plan: String,
}

/// Returns how recent the event was.
async fn changed(mut tx: DedupeTx, Json(event): Json<Changed>) -> Result<String, HandlerError> {
    let recency = tx.advance(&event.subscription, event.version).await?;
    if recency != Recency::Older {
        sqlx::query(
            "insert into subscriptions (id, plan) values ($1, $2)
             on conflict (id) do update set plan = excluded.plan",
        )
        .bind(&event.subscription)
        .bind(&event.plan)
        .execute(&mut *tx)
        .await?;
    }
    Ok(format!("{recency:?}"))
}

pub async fn example(pool: &PgPool) -> playground::Result<()> {
    sqlx::query("create table subscriptions (id text primary key, plan text)")
        .execute(pool)
        .await?;
    let billing = presets::standard_webhooks(Secret::new(SECRET)?);
    let sent = TestDelivery::new(&billing);
    let layer = IdempotentWebhook::new(pool.clone(), "subscriptions", billing);
    let app = Router::new().route("/", post(changed).layer(layer));
    let version = |version: i64, plan: &str| {
        sent.clone().id(format!("msg_{version}")).body(format!(
            r#"{{"subscription":"sub_1","version":{version},"plan":"{plan}"}}"#
        ))
    };
    let (first, second, third) = (version(1, "free"), version(2, "team"), version(3, "none"));

    println!("advance: a subscription is created, changed, and cancelled");
    let answer = send(&app, &first).await?;
    step("version 1, created", answer, "200 processed: Newer")?;
    let answer = send(&app, &third).await?;
    step("version 3, cancelled", answer, "200 processed: Newer")?;
    let answer = send(&app, &second).await?;
    step("version 2, changed, late", answer, "200 processed: Older")?;
    let answer = send(&app, &second).await?;
    step("its retry", answer, "200 duplicate")?;
    let plan: String = sqlx::query_scalar("select plan from subscriptions where id = 'sub_1'")
        .fetch_one(pool)
        .await?;
    step("the plan in the database", plan, "none")
}
