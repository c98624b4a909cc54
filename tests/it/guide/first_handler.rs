//! The first handler of the guide.

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::{DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, presets};

use crate::support::{Database, answer, assert_rows, now, secret, send, stripe};

include!("../../../src/documentation/first_handler.rs");

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
