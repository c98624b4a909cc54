//! The first handler of the guide.

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::{DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, presets};

use super::page;
use crate::support::{Database, answer, assert_rows, now, secret, send, stripe};

// From here on as in the guide.
#[derive(serde::Deserialize)]
struct PaidInvoice {
    created: i64,
    data: Data,
}

#[derive(serde::Deserialize)]
struct Data {
    object: Invoice,
}

#[derive(serde::Deserialize)]
struct Invoice {
    amount_paid: i64,
}

async fn paid(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<PaidInvoice>,
) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into payments (event_id, created, amount) values ($1, $2, $3)")
        .bind(delivery.id())
        .bind(event.created)
        .bind(event.data.object.amount_paid)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}
// Up to here.

#[tokio::test]
async fn the_first_handler_of_the_guide_is_not_called_for_events_of_other_shapes() {
    let database = Database::new().await;
    database
        .run("create table payments (event_id text, created bigint, amount bigint)")
        .await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::stripe(secret()));
    let events = Events::new().on("invoice.paid", paid).ignore_others();
    let app: Router = Router::new().route("/", post(events.layer(layer)));
    let voided = r#"{"id":"evt_1","type":"invoice.voided","data":[]}"#;
    let paid =
        r#"{"id":"evt_2","type":"invoice.paid","created":1,"data":{"object":{"amount_paid":5}}}"#;
    for (body, outcome) in [(voided, "ignored"), (paid, "processed")] {
        let answered = send(&app, stripe(body, now())).await;
        assert_eq!(answered, answer(200, outcome, ""));
    }
    assert_rows!(database, claims: 1, effects: 0);
    database
        .until("(select sum(amount) from payments) = 5")
        .await;
}

#[test]
fn the_guide_has_this_handler() {
    let (_, handler) = include_str!("first_handler.rs")
        .split_once("// From here on as in the guide.\n")
        .unwrap();
    let (handler, _) = handler.split_once("// Up to here.\n").unwrap();
    assert!(page("handling.md").contains(handler));
}
