//! The methods of an `ActiveModelEx`, which start nested transactions of their own.

use axum::http::StatusCode;
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{DedupeTx, HandlerError};
use sea_orm::{EntityTrait, SqlErr};

use crate::application::Application;
use crate::entity::{line, order};

async fn ordered(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let order = |customer: &str| order::ActiveModel::builder().set_customer(customer);
    let line = |article: &str| line::ActiveModel::builder().set_article(article);
    let alice = order("alice").add_line(line("pen")).add_line(line("ink"));
    alice.insert(&db).await?;

    // The pen is already sold, so the order and its paper are rolled back as well.
    let bob = order("bob").add_line(line("paper")).add_line(line("pen"));
    let error = bob.insert(&db).await.unwrap_err();
    assert!(matches!(
        error.sql_err(),
        Some(SqlErr::UniqueConstraintViolation(_))
    ));

    order("carol").add_line(line("book")).save(&db).await?;
    let dave = order("dave").add_line(line("cup")).insert(&db).await?;
    dave.delete(&db).await?;
    assert_eq!(order::Entity::find().all(&db).await?.len(), 2);
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn models_with_their_children_are_written_whole_or_not_at_all() {
    let application = Application::new(ordered).await;
    let lines = async || application.lines().await.len() as i64;
    assert_idempotent(&application.router, &application.delivery(), lines).await;
    assert_eq!(
        application.lines().await,
        ["alice: ink", "alice: pen", "carol: book"]
    );
}
