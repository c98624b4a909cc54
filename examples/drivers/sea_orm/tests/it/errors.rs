//! Handlers get SeaORM's own errors. If a handler swallows an error, its delivery is not
//! acknowledged.

use std::ops::Deref;

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, HandlerError};
use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbErr, EntityTrait, RuntimeErr, SqlErr, Statement,
    TransactionTrait,
};

use crate::application::{Application, database, failed, processed};
use crate::entity::{line, payment as payments};
use crate::payment;

fn is_unique_violation<T>(result: Result<T, DbErr>) -> bool {
    let error = result.err().and_then(|error| error.sql_err());
    matches!(error, Some(SqlErr::UniqueConstraintViolation(_)))
}

async fn in_each_way(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    payment("a").insert(&db).await?;

    let savepoint = db.begin().await?;
    // `insert` uses `query_one` with `returning`.
    assert!(is_unique_violation(payment("a").insert(&savepoint).await));
    drop(savepoint);

    let savepoint = db.begin().await?;
    let many = payments::Entity::insert_many([payment("b"), payment("a")]);
    assert!(is_unique_violation(
        many.exec_with_returning(&savepoint).await
    ));
    drop(savepoint);

    let savepoint = db.begin().await?;
    let inserted = payments::Entity::insert(payment("a")).exec_without_returning(&savepoint);
    assert!(is_unique_violation(inserted.await));
    drop(savepoint);

    let savepoint = db.begin().await?;
    let sql = "insert into payments (event_id) values ('a')";
    assert!(is_unique_violation(savepoint.execute_unprepared(sql).await));
    drop(savepoint);

    let savepoint = db.begin().await?;
    let line = line::ActiveModel {
        order_id: sea_orm::Set(1),
        article: sea_orm::Set("a".to_owned()),
        ..Default::default()
    };
    let foreign = line.insert(&savepoint).await.unwrap_err();
    assert!(matches!(
        foreign.sql_err(),
        Some(SqlErr::ForeignKeyConstraintViolation(_))
    ));
    drop(savepoint);

    let savepoint = db.begin().await?;
    let statement = Statement::from_string(savepoint.get_database_backend(), "select 1 / 0");
    let error = savepoint.query_all_raw(statement).await.unwrap_err();
    let DbErr::Query(RuntimeErr::SqlxError(error)) = error else {
        panic!("{error:?}");
    };
    let code = match error.deref() {
        sqlx::Error::Database(error) => error.code(),
        _ => None,
    };
    assert_eq!(code.as_deref(), Some("22012"));
    drop(savepoint);
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn violations_are_recognised_by_sql_err() {
    let application = Application::new(in_each_way).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["a"]);
}

async fn swallows(mut tx: DedupeTx) -> StatusCode {
    let db = tx.sea_orm();
    payment("a").insert(&db).await.unwrap();
    assert!(is_unique_violation(payment("a").insert(&db).await));
    StatusCode::OK
}

#[tokio::test]
async fn g5_a_swallowed_error_is_not_acknowledged() {
    let application = Application::new(swallows).await;
    assert_eq!(application.deliver().await, failed());
    assert!(application.payments().await.is_empty());
    assert!(application.claims().await.is_empty());
}

async fn goes_on(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let _ = db.execute_unprepared("select 1 / 0").await;
    // Postgres refuses this insert because the transaction is aborted. The insert must not be
    // committed outside the transaction either.
    assert!(payment("a").insert(&db).await.is_err());
    assert!(db.begin().await.is_err());
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn nothing_is_written_after_an_error() {
    let application = Application::new(goes_on).await;
    assert_eq!(application.deliver().await, failed());
    assert!(application.payments().await.is_empty());
    assert!(application.claims().await.is_empty());
}

#[tokio::test]
async fn a_reason_is_without_the_line_of_postgres_own_source() {
    let database = database().await;
    let twice = payments::Entity::insert_many([payment("a"), payment("a")]);
    let error = twice.exec(&database).await.unwrap_err();
    assert!(error.to_string().contains(" at line "), "{error}");
    assert_eq!(
        HandlerError::from(error).to_string(),
        "Query Error: error returned from database: duplicate key value violates unique \
         constraint \"payments_pkey\""
    );
}
