//! The table of answers, row by row: the status, the outcome, what the sender sees, and what is
//! left in the database.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use idempotent_webhook::{DedupeTx, Delivery, presets};

use crate::support::{
    TestApp, answer, assert_rows, gated, github, insert_effect, now, secret, soon, spawn_send,
    stripe, stripe_delivery, stripe_event, write_effect,
};

const UNAUTHORIZED: &str = "signature missing or not valid";

#[tokio::test]
async fn a_processed_delivery_is_the_handlers_response_and_a_duplicate_is_an_empty_200() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "done")
    );
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(
        app.send(github("b", "{}")).await,
        answer(200, "processed", "done")
    );
    assert_eq!(app.runs(), 2);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn g1_a_request_that_is_not_authentic_is_a_401() {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    let connections = app.database.pool.size();
    let event = || stripe_event("evt_1");

    let missing = stripe_delivery(event()).unsigned().request();

    let mut malformed = stripe(event(), now());
    malformed
        .headers_mut()
        .insert("stripe-signature", "t=1".parse().unwrap());

    let wrong = stripe_delivery(event()).tampered().request();

    let too_old = stripe(event(), now() - 302);

    let mut disagreeing = stripe(event(), now());
    let other = stripe(event(), now() - 1).headers()["stripe-signature"].clone();
    disagreeing.headers_mut().append("stripe-signature", other);

    let mut not_ascii = stripe(event(), now());
    not_ascii
        .headers_mut()
        .insert("stripe-signature", "t=1,v1=é".parse().unwrap());

    for request in [missing, malformed, wrong, too_old, disagreeing, not_ascii] {
        let shown = format!("{request:?}");
        assert_eq!(
            app.send(request).await,
            answer(401, "rejected", UNAUTHORIZED),
            "{shown}"
        );
    }
    assert_eq!(
        app.send(axum::http::Request::post("/").body("".into()).unwrap())
            .await,
        answer(401, "rejected", UNAUTHORIZED)
    );
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.database.pool.size(), connections);
}

#[tokio::test]
async fn a_handler_that_answers_otherwise_is_rolled_back_and_its_response_kept() {
    async fn fail(mut tx: DedupeTx, delivery: Delivery) -> Response {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let status = delivery.id().as_str().parse().unwrap();
        (StatusCode::from_u16(status).unwrap(), "not today").into_response()
    }
    let app = TestApp::github(fail).await;
    for status in [302, 400, 404, 409, 500, 503] {
        let answered = app.send(github(&status.to_string(), "{}")).await;
        assert_eq!(answered.status, status);
        assert_eq!(answered.outcome, "failed");
        assert_eq!(answered.body, "not today");
        assert_rows!(app.database, claims: 0, effects: 0);
    }
    assert_eq!(app.send(github("204", "{}")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn g6_a_panic_is_a_500_and_rolled_back() {
    async fn panics(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        panic!("on purpose");
    }
    let app = TestApp::github(panics).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(500, "failed", "internal error")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.database.writing().await, 0);
    app.settled().await;
}

#[tokio::test]
async fn g6_a_handler_out_of_time_is_a_503_and_rolled_back() {
    async fn sleeps(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        StatusCode::OK
    }
    let app = TestApp::github_with(
        |layer| layer.handler_timeout(Duration::from_millis(100)),
        sleeps,
    )
    .await;
    assert_eq!(
        soon(app.send(github("a", "{}"))).await,
        answer(503, "failed", "temporarily unavailable")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.database.writing().await, 0);
    app.settled().await;
}

#[tokio::test]
async fn g7_a_delivery_still_in_flight_when_the_wait_ends_is_a_503() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(
        |layer| layer.in_flight_timeout(Duration::from_millis(100)),
        handler,
    )
    .await;
    let first = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(503, "in-flight", "in flight, retry later")
    );
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}
