//! Work that a handler registers for after the commit: it runs only after the commit, in order, and
//! its result changes nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, presets};
use tokio::sync::{Notify, mpsc};

use crate::support::{
    Database, TestApp, answer, assert_rows, github, insert_effect, secret, send, soon,
};

type Notes = mpsc::UnboundedSender<String>;

/// Notes the name of the work, and how many deliveries are committed at that time.
async fn note(notes: Notes, pool: sqlx::PgPool, what: &str) -> Result<(), sqlx::Error> {
    let committed: i64 = sqlx::query_scalar("select count(*) from idempotent_webhook.deliveries")
        .fetch_one(&pool)
        .await?;
    notes.send(format!("{what} {committed}")).unwrap();
    Ok(())
}

async fn panics() {
    panic!("it panicked")
}

#[tokio::test]
async fn work_after_the_commit_is_done_in_order_and_none_of_it_disturbs_the_rest() {
    let database = Database::new().await;
    let (notes, mut noted) = mpsc::unbounded_channel();
    let pool = database.pool.clone();
    let handler = async move |mut tx: DedupeTx, delivery: Delivery| {
        tx.after_commit(note(notes.clone(), pool.clone(), "first"));
        tx.after_commit(async { Err("it failed") });
        tx.after_commit(panics());
        tx.after_commit(std::future::pending::<()>());
        tx.after_commit(note(notes.clone(), pool.clone(), "last"));
        insert_effect(&mut tx, &delivery).await.unwrap();
        assert!(notes.send("answered".into()).is_ok());
        StatusCode::OK
    };
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .handler_timeout(Duration::from_millis(300));
    let drained = layer.drained();
    let router = axum::Router::new().route("/", axum::routing::post(handler).layer(layer));
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(200, "processed", "")
    );
    // The drain also waits for the work.
    soon(drained).await;
    for expected in ["answered", "first 1", "last 1"] {
        assert_eq!(noted.try_recv().unwrap(), expected);
    }
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert!(noted.try_recv().is_err());
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn the_response_does_not_wait_for_the_work() {
    let (notes, mut noted) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let app = TestApp::github(async move |mut tx: DedupeTx| {
        let (notes, wait) = (notes.clone(), wait.clone());
        tx.after_commit(async move {
            wait.notified().await;
            notes.send("done")
        });
        StatusCode::OK
    })
    .await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    go.notify_one();
    assert_eq!(soon(noted.recv()).await, Some("done"));
}

#[tokio::test]
async fn what_is_not_committed_has_no_work_after_it() {
    for (status, swallowed) in [(StatusCode::BAD_REQUEST, false), (StatusCode::OK, true)] {
        let (notes, mut noted) = mpsc::unbounded_channel();
        let app = TestApp::github(async move |mut tx: DedupeTx| {
            let notes = notes.clone();
            tx.after_commit(async move { notes.send("done") });
            if swallowed {
                let _ = sqlx::query("select no_such_column").execute(&mut *tx).await;
            }
            status
        })
        .await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "failed");
        // The work was dropped, and with it all senders of notes except the handler's own.
        tokio::task::yield_now().await;
        assert!(noted.try_recv().is_err());
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// A value that panics when it is dropped. The work that owns the value drops it when the work
/// ends, or when its time limit is reached.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[tokio::test]
async fn a_panic_when_work_is_dropped_does_not_disturb_the_rest() {
    for hangs in [false, true] {
        let (notes, mut noted) = mpsc::unbounded_channel();
        let handler = async move |mut tx: DedupeTx| {
            let notes = notes.clone();
            let panics = PanicsInDrop;
            tx.after_commit(async move {
                let _panics = panics;
                if hangs {
                    std::future::pending::<()>().await;
                }
            });
            tx.after_commit(async move { notes.send("last") });
            StatusCode::OK
        };
        let app = TestApp::github_with(
            |layer| layer.handler_timeout(Duration::from_millis(300)),
            handler,
        )
        .await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
        assert_eq!(soon(noted.recv()).await, Some("last"));
    }
}

#[tokio::test]
async fn a_panic_when_work_is_dropped_does_not_change_the_answer() {
    let app = TestApp::github(async |mut tx: DedupeTx| {
        let panics = PanicsInDrop;
        tx.after_commit(async move { drop(panics) });
        StatusCode::CONFLICT
    })
    .await;
    assert_eq!(app.send(github("a", "{}")).await.status, 409);
    assert_rows!(app.database, claims: 0, effects: 0);
}
