//! What the providers send fits the types, is processed once, and runs again without a signature.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use axum::Router;
use axum::body::Body;
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{Secret, presets};
use serde_json::json;
use sqlx::PgPool;
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tower::ServiceExt;
use typed_events::router;

async fn count(pool: &PgPool, table: &'static str) -> i64 {
    let count = match table {
        "customers" => "select count(*) from customers",
        _ => "select count(*) from pushes",
    };
    sqlx::query_scalar(count).fetch_one(pool).await.unwrap()
}

async fn outcome(router: &Router, delivery: &TestDelivery) -> (u16, String) {
    let response = router.clone().oneshot(delivery.request::<Body>());
    let response = response.await.unwrap();
    let outcome = response.headers()["x-webhook-outcome"].to_str().unwrap();
    (response.status().as_u16(), outcome.to_owned())
}

#[tokio::test]
async fn events_of_other_crates_are_read_from_the_verified_body() {
    let server = ThrowawayPostgres::start(Durability::Lossy).await.unwrap();
    let pool = PgPool::connect_with(server.options("postgres"))
        .await
        .unwrap();
    idempotent_webhook::migrate(&pool).await.unwrap();
    sqlx::raw_sql(
        "create table customers (id text primary key, email text);
         create table pushes (ref text, after text primary key)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let stripe = presets::stripe(Secret::new("whsec_typed").unwrap());
    let github = presets::github(Secret::new("typed").unwrap());
    let app = router(&pool, stripe.clone(), github.clone());

    let customer = json!({
        "id": "evt_1", "object": "event", "api_version": "2025-03-31.basil", "created": 1_700_000_000,
        "livemode": false, "pending_webhooks": 1, "request": null, "type": "customer.created",
        "data": { "object": {
            "id": "cus_1", "object": "customer", "created": 1_700_000_000, "livemode": false,
            "email": "jenny@example.com"
        }}
    });
    let created = TestDelivery::new(&stripe)
        .uri("/webhooks/stripe")
        .body(customer.to_string());
    assert_idempotent(&app, &created, || count(&pool, "customers")).await;

    let user = json!({ "name": "mona", "email": "mona@example.com" });
    let push = json!({
        "ref": "refs/heads/main", "before": "a1", "after": "b2", "base_ref": null, "created": false,
        "deleted": false, "forced": false, "compare": "https://github.com/a/b/compare/a1...b2",
        "pusher": user, "head_commit": null, "commits": [],
        "repository": { "id": 1, "name": "b", "url": "https://api.github.com/repos/a/b" }
    });
    let pushed = TestDelivery::new(&github)
        .uri("/webhooks/github")
        .event_type("push")
        .body(push.to_string());
    assert_idempotent(&app, &pushed, || count(&pool, "pushes")).await;

    let star = pushed.id("another").event_type("star");
    assert_eq!(outcome(&app, &star).await, (200, "ignored".to_owned()));
    pool.close().await;
}
