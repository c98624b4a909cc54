//! A replay: an attacker sends a captured request again, under another delivery id. GitHub signs the body but not the
//! id, so the signature is valid. Only the body shows that this is a replay.
//!
//! `replay_guard` treats requests with the same body as one delivery, and warns the operator of a replay. Do not use it
//! if the provider may send the same body for two different events.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Secret, presets};
use sqlx::PgPool;

use crate::playground::{self, send, step};

async fn push(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into builds (delivery_id) values ($1)")
        .bind(delivery.id())
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

pub async fn example(pool: &PgPool) -> playground::Result<()> {
    sqlx::query("create table builds (delivery_id text)")
        .execute(pool)
        .await?;
    let github = presets::github(Secret::new("a secret")?);
    let sent = TestDelivery::new(&github);
    let layer = IdempotentWebhook::new(pool.clone(), "builds", github).replay_guard();
    let app = Router::new().route("/", post(push).layer(layer));
    let delivery = |id: &str, commit: &str| {
        sent.clone()
            .id(id)
            .event_type("push")
            .body(format!(r#"{{"ref":"refs/heads/main","after":"{commit}"}}"#))
    };

    println!("replay_guard: a push is captured and sent again");
    let answer = send(&app, &delivery("guid-1", "6dcb09b")).await?;
    step("a push", answer, "200 processed")?;
    let answer = send(&app, &delivery("guid-2", "6dcb09b")).await?;
    step("the same under a new GUID", answer, "200 duplicate")?;
    let answer = send(&app, &delivery("guid-3", "b5b2e11")).await?;
    step("the next push", answer, "200 processed")?;
    let answer = send(&app, &delivery("guid-3", "0badc0d")).await?;
    step("its GUID with another body", answer, "200 duplicate")?;
    let builds: String =
        sqlx::query_scalar("select string_agg(delivery_id, ' ' order by delivery_id) from builds")
            .fetch_one(pool)
            .await?;
    step("builds", builds, "guid-1 guid-3")
}
