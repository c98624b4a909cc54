//! `begin` and `transaction` make savepoints in the transaction of the claim.

use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError};
use sea_orm::{
    AccessMode, ActiveModelTrait, ConnectionTrait, DbErr, IsolationLevel, TransactionError,
    TransactionSession, TransactionTrait,
};

use crate::application::{Application, failed, processed};
use crate::payment;

async fn ends_each(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let savepoint = db.begin().await?;
    payment("committed").insert(&savepoint).await?;
    savepoint.commit().await?;

    let savepoint = db.begin().await?;
    payment("rolled back").insert(&savepoint).await?;
    savepoint.rollback().await?;

    let savepoint = db.begin().await?;
    payment("outer").insert(&savepoint).await?;
    let inner = savepoint.begin().await?;
    payment("inner").insert(&inner).await?;
    inner.rollback().await?;
    let inner = savepoint.begin().await?;
    payment("inner committed").insert(&inner).await?;
    inner.commit().await?;
    savepoint.commit().await?;

    // The outer rollback includes what was committed inside.
    let savepoint = db.begin().await?;
    let inner = savepoint.begin().await?;
    payment("committed in vain").insert(&inner).await?;
    inner.commit().await?;
    savepoint.rollback().await?;

    payment("last").insert(&db).await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn a_savepoint_is_rolled_back_alone() {
    let application = Application::new(ends_each).await;
    assert_eq!(application.deliver().await, processed());
    let kept = ["committed", "inner committed", "last", "outer"];
    assert_eq!(application.payments().await, kept);
    assert_eq!(application.claims().await, ["evt_1"]);
}

async fn with_closures(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let kept = db.transaction(|savepoint| {
        Box::pin(async move {
            payment("kept").insert(savepoint).await?;
            let inner = savepoint.transaction(|savepoint| {
                Box::pin(async move {
                    payment("inner").insert(savepoint).await?;
                    payment("kept").insert(savepoint).await
                })
            });
            assert!(matches!(
                inner.await,
                Err(TransactionError::Transaction(DbErr::Query(_)))
            ));
            Ok::<_, DbErr>(1)
        })
    });
    assert_eq!(kept.await?, 1);
    let undone = db.transaction(|savepoint| {
        Box::pin(async move {
            payment("undone").insert(savepoint).await?;
            Err::<(), _>(DbErr::Custom("no".to_owned()))
        })
    });
    assert!(undone.await.is_err());
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn a_closure_that_fails_is_rolled_back_alone() {
    let application = Application::new(with_closures).await;
    // The delivery is processed only if no rollback looked like a forgotten commit.
    let payments = async || application.payments().await.len() as i64;
    assert_idempotent(&application.router, &application.delivery(), payments).await;
    assert_eq!(application.payments().await, ["kept"]);
}

async fn drops_one_that_has_failed(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    payment("kept").insert(&db).await?;
    let outer = db.begin().await?;
    let savepoint = outer.begin().await?;
    payment("dropped").insert(&savepoint).await?;
    assert!(payment("kept").insert(&savepoint).await.is_err());
    drop(savepoint);
    drop(outer);
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn one_that_is_dropped_after_an_error_is_rolled_back() {
    let application = Application::new(drops_one_that_has_failed).await;
    let payments = async || application.payments().await.len() as i64;
    assert_idempotent(&application.router, &application.delivery(), payments).await;
    assert_eq!(application.payments().await, ["kept"]);
}

async fn forgets_the_commit(
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    payment(delivery.id().as_str()).insert(&db).await?;
    let savepoint = db.begin().await?;
    payment("forgotten").insert(&savepoint).await?;
    Ok(StatusCode::OK)
}

/// Forgets the commit inside a savepoint of sqlx.
async fn forgets_the_commit_within_another(
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    let mut outer = tx.begin().await?;
    {
        let db = outer.sea_orm();
        payment(delivery.id().as_str()).insert(&db).await?;
        let savepoint = db.begin().await?;
        payment("forgotten").insert(&savepoint).await?;
    }
    outer.commit().await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn a_forgotten_commit_is_found() {
    for application in [
        Application::new(forgets_the_commit).await,
        Application::new(forgets_the_commit_within_another).await,
    ] {
        assert_eq!(application.deliver().await, processed());
        assert_eq!(application.payments().await, ["evt_1"]);

        let (router, delivery) = (application.router.clone(), application.delivery());
        let asserted = tokio::spawn(async move {
            assert_idempotent(&router, &delivery.id("evt_2"), async || 0).await;
        });
        let panic = asserted.await.unwrap_err().into_panic();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("dropped a savepoint"), "{message}");
    }
}

async fn leaves_one_open(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let savepoint = db.begin().await?;
    payment("a").insert(&savepoint).await?;
    std::mem::forget(savepoint);
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn one_that_is_never_ended_is_not_committed() {
    let application = Application::new(leaves_one_open).await;
    assert_eq!(application.deliver().await, failed());
    assert!(application.payments().await.is_empty());
    assert!(application.claims().await.is_empty());
}

async fn writes_beside_it(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let savepoint = db.begin().await?;
    payment("a").insert(&savepoint).await?;
    payment("b").insert(&db).await?;
    savepoint.rollback().await?;
    Ok(StatusCode::OK)
}

async fn begins_beside_it(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let (a, b) = (db.begin().await?, db.begin().await?);
    a.commit().await?;
    b.commit().await?;
    Ok(StatusCode::OK)
}

async fn commits_around_it(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let outer = db.begin().await?;
    let inner = outer.begin().await?;
    payment("a").insert(&inner).await?;
    outer.commit().await?;
    inner.rollback().await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn what_would_run_in_another_savepoint_is_refused() {
    for application in [
        Application::new(writes_beside_it).await,
        Application::new(begins_beside_it).await,
        Application::new(commits_around_it).await,
    ] {
        assert_eq!(application.deliver().await, failed());
        assert!(application.payments().await.is_empty());
        assert!(application.claims().await.is_empty());
    }
}

/// Drops a savepoint while a write is already waiting for the connection. The write would be the
/// next to get it.
async fn drops_it_while_another_waits(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let savepoint = db.begin().await?;
    let sleep = savepoint.execute_unprepared("select pg_sleep(0.3)");
    let mut sleep = Box::pin(sleep);
    let write = payment("a").insert(&db);
    let mut write = Box::pin(write);
    let first = tokio::time::timeout(Duration::from_millis(50), &mut sleep);
    assert!(first.await.is_err());
    let second = tokio::time::timeout(Duration::from_millis(50), &mut write);
    assert!(second.await.is_err());
    drop(sleep);
    drop(savepoint);
    drop(write);
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn one_that_cannot_be_rolled_back_is_not_committed() {
    let application = Application::new(drops_it_while_another_waits).await;
    assert_eq!(application.deliver().await, failed());
    assert!(application.payments().await.is_empty());
    assert!(application.claims().await.is_empty());
}

async fn cancels_a_statement(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    db.execute_unprepared("set local statement_timeout = '200ms'")
        .await?;
    let savepoint = db.begin().await?;
    payment("cancelled").insert(&savepoint).await?;
    let sleep = savepoint.execute_unprepared("select pg_sleep(60)");
    let sleep = tokio::time::timeout(Duration::from_millis(50), sleep);
    assert!(sleep.await.is_err());
    savepoint.rollback().await?;
    payment("kept").insert(&db).await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn a_cancelled_statement_is_rolled_back_with_its_savepoint() {
    let application = Application::new(cancels_a_statement).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["kept"]);
}

async fn asks_for_a_level(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let serializable = Some(IsolationLevel::Serializable);
    for (isolation, access) in [(serializable, None), (None, Some(AccessMode::ReadOnly))] {
        let refused = db.begin_with_config(isolation, access).await;
        assert!(matches!(refused, Err(DbErr::BackendNotSupported { .. })));
    }
    payment("a").insert(&db).await?;
    db.begin_with_config(None, None).await?.commit().await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn a_savepoint_has_no_isolation_level() {
    let application = Application::new(asks_for_a_level).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["a"]);
}
