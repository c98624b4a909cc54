//! Guarantees G7 and G10: another session locks a row that a claim needs, and never releases it. The claim ends within
//! its limit, and its session does not keep waiting.

use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, presets};
use sqlx::postgres::PgPoolOptions;

use crate::support::{
    Database, Failing, NO_ADVISORY_LOCK, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, TestApp, another,
    answer, assert_kept, assert_rows, gated, github, insert_effect, keep, secret, send, soon,
    spawn_send, write_effect,
};

fn impatient(layer: IdempotentWebhook) -> IdempotentWebhook {
    layer
        .in_flight_timeout(Duration::from_millis(300))
        .database_timeout(Duration::from_millis(600))
}

/// Asserts that the claim has left neither a waiting session nor a lock.
async fn assert_no_session_waits(database: &Database) {
    let waiting = format!("select count(*) where {ONE_WAITS_FOR_A_LOCK}");
    assert_eq!(database.count(&waiting).await, 0);
    database.until(NO_ADVISORY_LOCK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_a_claim_whose_row_is_being_deleted_does_not_wait_on() {
    let app = TestApp::github_with(impatient, write_effect).await;
    let sent = app.send(github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    let holder = another(
        &app.database,
        "delete from idempotent_webhook.deliveries where delivery_id = 'a'",
    )
    .await;
    for _ in 0..2 {
        let sent = soon(app.send(github("a", "{}"))).await;
        assert_eq!(sent, answer(503, "in-flight", "in flight, retry later"));
        assert_no_session_waits(&app.database).await;
    }
    let other = app.send(github("b", "{}")).await;
    assert_eq!(other, answer(200, "processed", "done"));
    holder.commit().await.unwrap();
    let sent = app.send(github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 2, effects: 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_a_claim_whose_kept_row_is_held_does_not_wait_on() {
    let app = TestApp::keeping(|keep| keep, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let elsewhere = app.elsewhere_with(impatient, write_effect).await;
    let holder = another(
        &app.database,
        "select from idempotent_webhook.kept_deliveries for update",
    )
    .await;
    for _ in 0..2 {
        let sent = soon(send(&elsewhere, github("a", "{}"))).await;
        assert_eq!(sent, answer(503, "in-flight", "in flight, retry later"));
        assert_no_session_waits(&app.database).await;
    }
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 0, effects: 0);
    holder.rollback().await.unwrap();
    let sent = send(&elsewhere, github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn g7_the_handler_has_the_lock_timeout_of_the_pool_if_the_delivery_was_kept() {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await?;
        let limit: String = sqlx::query_scalar("show lock_timeout")
            .fetch_one(&mut *tx)
            .await?;
        Ok::<_, HandlerError>(limit)
    };
    for is_guarded in [false, true] {
        let set = |layer: IdempotentWebhook| match is_guarded {
            true => layer.replay_guard(),
            false => layer,
        };
        let keeping = |layer: IdempotentWebhook, recovery: &_| set(layer).keep(keep(recovery));
        let github_preset = presets::github(secret());
        let app = TestApp::recovered(github_preset, keeping, Failing::times(1).handler()).await;
        let name = &app.database.name;
        app.database
            .run(&format!(
                "alter database {name} set lock_timeout = '1234ms'"
            ))
            .await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        let elsewhere = app.elsewhere_with(set, handler).await;
        let sent = send(&elsewhere, github("a", "{}")).await;
        assert_eq!(sent, answer(200, "processed", "1234ms"), "{is_guarded}");
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g10_a_registration_that_another_session_holds_up_does_not_wait_on() {
    let app = TestApp::github_with(impatient, write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.status, 200);
    let holder = another(
        &app.database,
        "delete from idempotent_webhook.redelivery_windows",
    )
    .await;
    let elsewhere = app.elsewhere_with(impatient, write_effect).await;
    let sent = soon(send(&elsewhere, github("b", "{}"))).await;
    assert_eq!((sent.status, &*sent.outcome), (503, "failed"));
    assert_no_session_waits(&app.database).await;
    holder.commit().await.unwrap();
    let sent = send(&elsewhere, github("b", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// The delivery is being processed for longer than the `lock_timeout` of the pool.
#[tokio::test(flavor = "multi_thread")]
async fn q2_an_operator_waits_for_as_long_as_the_lock_timeout_of_the_pool() {
    let app = TestApp::keeping(|keep| keep, async || StatusCode::BAD_GATEWAY).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let (mut gate, handler) = gated();
    let elsewhere = app.elsewhere(handler).await;
    let busy = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;
    let options = app.database.options();
    let pool = PgPoolOptions::new()
        .connect_with(options.options([("lock_timeout", "100ms")]))
        .await
        .unwrap();
    let endpoint = Endpoint::new(pool, "test");
    for error in [
        soon(endpoint.discard("a")).await.map(drop).unwrap_err(),
        soon(endpoint.erase("a")).await.map(drop).unwrap_err(),
    ] {
        let code = error.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("55P03"));
    }
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    gate.open();
    assert_eq!(busy.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}
