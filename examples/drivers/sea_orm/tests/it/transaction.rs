//! What a handler writes is committed with the claim, or not at all.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::Extension;
use axum::http::StatusCode;
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DatabaseConnection, DbErr};

use crate::application::{Application, processed};
use crate::payment;

/// A function that an application calls from anywhere.
async fn book(db: &impl ConnectionTrait, event_id: &str) -> Result<(), DbErr> {
    payment(event_id).insert(db).await?;
    Ok(())
}

async fn paid(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    book(&tx.sea_orm(), delivery.id().as_str()).await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn an_entity_is_inserted_once_over_duplicates() {
    let application = Application::new(paid).await;
    assert_eq!(application.deliver().await, processed());
    let duplicate = (200, "duplicate".to_owned());
    assert_eq!(application.deliver().await, duplicate);
    assert_eq!(application.payments().await, ["evt_1"]);
    assert_eq!(application.claims().await, ["evt_1"]);

    let another = application.delivery().id("evt_2");
    let payments = async || application.payments().await.len() as i64;
    assert_idempotent(&application.router, &another, payments).await;
    assert_eq!(application.payments().await, ["evt_1", "evt_2"]);
}

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

async fn paid_at_the_second_attempt(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    book(&tx.sea_orm(), "evt_1").await?;
    Ok(match ATTEMPTS.fetch_add(1, Ordering::Relaxed) {
        0 => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    })
}

#[tokio::test]
async fn an_insert_is_rolled_back_with_its_handler() {
    let application = Application::new(paid_at_the_second_attempt).await;
    assert_eq!(application.deliver().await, (409, "failed".to_owned()));
    assert!(application.payments().await.is_empty());
    assert!(application.claims().await.is_empty());

    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["evt_1"]);
    assert_eq!(application.claims().await, ["evt_1"]);
}

/// Writes with sqlx and with SeaORM in one transaction.
async fn by_sqlx_and_sea_orm(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    book(&tx.sea_orm(), "a").await?;
    sqlx::query("update payments set note = 'by sqlx'")
        .execute(&mut *tx)
        .await?;
    let mut savepoint = tx.begin().await?;
    book(&savepoint.sea_orm(), "b").await?;
    savepoint.commit().await?;
    let mut savepoint = tx.begin().await?;
    book(&savepoint.sea_orm(), "c").await?;
    savepoint.rollback().await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn sqlx_and_its_savepoints_share_the_transaction() {
    let application = Application::new(by_sqlx_and_sea_orm).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["a: by sqlx", "b"]);
}

/// Writes on another connection, outside the transaction of the claim. The documentation warns
/// against this.
async fn past_the_transaction(
    _: DedupeTx,
    Extension(database): Extension<DatabaseConnection>,
) -> Result<StatusCode, HandlerError> {
    book(&database, "evt_1").await?;
    Err(HandlerError::new("too late"))
}

#[tokio::test]
async fn what_is_written_to_the_database_itself_stays() {
    let mut application = Application::new(past_the_transaction).await;
    let database = Extension(application.database.clone());
    application.router = application.router.layer(database);
    assert_eq!(application.deliver().await.0, 500);
    assert!(application.claims().await.is_empty());
    assert_eq!(application.payments().await, ["evt_1"]);
}
