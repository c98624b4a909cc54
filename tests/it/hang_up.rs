//! G8: the client's hang-up changes nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, Delivery};
use tokio::sync::{Semaphore, mpsc};

use crate::support::{Webhook, answer, github, record, send, sending};

#[tokio::test(flavor = "multi_thread")]
async fn g8_a_handler_whose_client_has_gone_completes_and_commits() {
    let gate = Arc::new(Semaphore::new(0));
    let (started, mut has_started) = mpsc::channel(1);
    let webhook = Webhook::new({
        let gate = gate.clone();
        async move |mut tx: DedupeTx, delivery: Delivery| {
            started.send(()).await.unwrap();
            gate.acquire().await.unwrap().forget();
            record(&mut tx, &delivery).await.unwrap();
            StatusCode::OK
        }
    })
    .await;
    let sending = sending(&webhook.router, github("a", "{}"));
    has_started.recv().await.unwrap();
    sending.abort();
    assert!(sending.await.unwrap_err().is_cancelled());
    gate.add_permits(1);
    webhook.database.until("exists (select from effects)").await;
    webhook.settled().await;
    assert_eq!(
        webhook.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(webhook.runs(), 1);
    assert_eq!(webhook.database.rows().await, (1, 1));
}

/// Hangs up after ever more time, so that every await between BEGIN and COMMIT is hit.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_hang_up_at_any_moment_leaves_all_or_nothing() {
    let webhook = Webhook::new(async |mut tx: DedupeTx, delivery: Delivery| {
        record(&mut tx, &delivery).await.unwrap();
        StatusCode::OK
    })
    .await;
    for moment in 0..200 {
        let router = webhook.router.clone();
        let id = moment.to_string();
        let sending = send(&router, github(&id, "{}"));
        let _ = tokio::time::timeout(Duration::from_micros(50 * moment), sending).await;
    }
    webhook.settled().await;
    let (claimed, effects) = webhook.database.rows().await;
    assert_eq!(claimed, effects);
    for moment in 0..200 {
        let retry = webhook.send(github(&moment.to_string(), "{}")).await;
        assert_eq!(retry.status, 200);
    }
    assert_eq!(webhook.database.rows().await, (200, 200));
    assert_eq!(webhook.runs(), 200);
    assert_eq!(webhook.database.in_transaction().await, 0);
}
