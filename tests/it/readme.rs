//! The README's test of a handler, which is run here as it stands there.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Secret, presets};
use sqlx::PgPool;

use crate::support::Database;

/// With the application's router, whose secret is `whsec_test`, and an empty database with its
/// tables and `idempotent_webhook::migrate`.
async fn a_payment_is_booked_once(app: Router, pool: PgPool) {
    let stripe = presets::stripe(Secret::new("whsec_test").unwrap());
    let paid = TestDelivery::new(&stripe)
        .uri("/webhooks/stripe")
        .event_type("invoice.paid")
        .body(r#"{"data":{"object":{"id":"in_1","amount_paid":4200}}}"#);

    assert_idempotent(&app, &paid, async || {
        let payments: i64 = sqlx::query_scalar("select count(*) from payments")
            .fetch_one(&pool)
            .await
            .unwrap();
        payments
    })
    .await;
}

async fn payment(mut tx: DedupeTx) -> StatusCode {
    let booked = sqlx::query("insert into payments default values")
        .execute(&mut *tx)
        .await;
    match booked {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_in_the_readme_passes() {
    let database = Database::new().await;
    database
        .run("create table payments (id serial primary key)")
        .await;
    let stripe = presets::stripe(Secret::new("whsec_test").unwrap());
    let layer = IdempotentWebhook::new(database.pool.clone(), "billing", stripe);
    let app = Router::new().route("/webhooks/stripe", post(payment).layer(layer));
    a_payment_is_booked_once(app, database.pool.clone()).await;
}

#[test]
fn the_readme_has_the_function_that_is_run_here() {
    let here = include_str!("readme.rs");
    let begin = here.find("/// With the application's router").unwrap();
    let end = here.find("async fn payment").unwrap();
    let function = here[begin..end].trim();
    assert!(include_str!("../../README.md").contains(function));
}
