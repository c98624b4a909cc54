//! The replay guard: if somebody sends a captured body again under a new id, nothing of that
//! request is kept.

use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Recovery, presets};

use crate::support::{
    NOTHING_KEPT, TestApp, assert_rows, github, github_delivery, insert_effect, keep,
    keep_accepted, keep_all, recover, secret,
};

/// A handler that fails if the body says so.
async fn handler(
    mut tx: DedupeTx,
    delivery: Delivery,
    body: String,
) -> Result<StatusCode, HandlerError> {
    insert_effect(&mut tx, &delivery).await?;
    match &*body {
        "fails" => Err(HandlerError::new("on purpose").retry_after(Duration::from_secs(3600))),
        _ => Ok(StatusCode::OK),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_of_a_replayed_body_and_a_real_failure_is_kept() {
    for way in [keep, keep_all, keep_accepted] {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| {
            layer
                .replay_guard()
                .keep(way(recovery).quota(20, 1024 * 1024))
        };
        let app = TestApp::recovered(presets::github(secret()), set, handler).await;
        let task = recover(&app);
        app.send(github("first", "captured")).await;
        app.database.until(NOTHING_KEPT).await;
        for n in 0..60 {
            let status = app
                .send(github(&format!("replay-{n}"), "captured"))
                .await
                .status;
            assert_eq!(status, 200);
        }
        app.database.until(NOTHING_KEPT).await;
        assert_eq!(app.runs(), 1);
        assert_rows!(app.database, claims: 1, effects: 1);

        let real = app.send(github("real", "fails")).await;
        assert!(["kept", "accepted"].contains(&&*real.outcome), "{real:?}");
        app.database
            .until(
                "(select array_agg(delivery_id) from idempotent_webhook.kept_deliveries
                  where state = 'due' and reason = 'on purpose') = '{real}'",
            )
            .await;
        task.stop().await;
        assert_eq!(app.runs(), 2);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// The provider's list contains a delivery that is neither processed nor kept, because its body was
/// processed under another id. It is not missing.
#[tokio::test]
async fn n2_a_delivery_whose_body_was_processed_is_not_missing_where_the_endpoint_is_reconciled() {
    for way in [keep, keep_all] {
        for is_reconciled in [false, true] {
            let set = |layer: IdempotentWebhook, recovery: &Recovery| {
                layer.replay_guard().keep(way(recovery))
            };
            let app = TestApp::recovered(presets::github(secret()), set, handler).await;
            if is_reconciled {
                app.database
                    .run(
                        "insert into idempotent_webhook.reconciliations
                             (endpoint, path, source, begins_at)
                         values ('test', '/', 'github', now())",
                    )
                    .await;
            }
            assert_eq!(app.send(github("first", "{}")).await.outcome, "processed");
            assert_eq!(app.send(github("second", "{}")).await.outcome, "duplicate");
            let set_aside: Vec<String> =
                sqlx::query_scalar("select delivery_id from idempotent_webhook.discarded")
                    .fetch_all(&app.database.pool)
                    .await
                    .unwrap();
            let expected: &[&str] = if is_reconciled { &["second"] } else { &[] };
            assert_eq!(set_aside, expected);
            app.database.until(NOTHING_KEPT).await;
            assert_rows!(app.database, claims: 1, effects: 1);
        }
    }
}

/// The delivery failed before another delivery with the same body was processed.
#[tokio::test]
async fn what_had_failed_ends_once_its_body_was_processed_under_another_id() {
    let set =
        |layer: IdempotentWebhook, recovery: &Recovery| layer.replay_guard().keep(keep(recovery));
    let handler = |mut tx: DedupeTx, delivery: Delivery| async move {
        insert_effect(&mut tx, &delivery).await.unwrap();
        match delivery.id().as_str() {
            "fails" => StatusCode::BAD_GATEWAY,
            _ => StatusCode::OK,
        }
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let captured = |id: &str| -> TestDelivery { github_delivery().id(id).body("{}") };
    assert_eq!(app.send(captured("fails").request()).await.outcome, "kept");
    assert_eq!(
        app.send(captured("other").request()).await.outcome,
        "processed"
    );
    assert_eq!(
        app.send(captured("fails").request()).await.outcome,
        "duplicate"
    );
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}
