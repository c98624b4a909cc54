//! Queries through entities, and statements with values.

use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, HandlerError};
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, IntoActiveModel,
    ModelTrait, PaginatorTrait, QueryFilter, QueryOrder, Set, Statement,
};

use crate::application::{Application, processed};
use crate::entity::{order, payment as payments};
use crate::payment;

/// A value that would change the statement if it became part of the statement's text.
const QUOTED: &str = "'); drop table payments; --";

async fn active_models(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let mut model = payment("a").insert(&db).await?.into_active_model();
    model.note = Set(Some("updated".to_owned()));
    let model = model.update(&db).await?;
    assert_eq!(model.note.as_deref(), Some("updated"));
    payment("b").insert(&db).await?.delete(&db).await?;

    // The order is inserted without a key. The update uses the key that the insert has returned.
    let order = order::ActiveModel {
        customer: Set("alice".to_owned()),
        ..Default::default()
    };
    let mut order = order.save(&db).await?;
    order.customer = Set("bob".to_owned());
    order.save(&db).await?;
    let orders = order::Entity::find().all(&db).await?;
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0].customer, "bob");
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn active_models_are_inserted_updated_saved_and_deleted() {
    let application = Application::new(active_models).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["a: updated"]);
}

async fn entities(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    let many = payments::Entity::insert_many(["a", "b", "c"].map(payment));
    assert_eq!(many.exec_without_returning(&db).await?, 3);
    let d = payments::Entity::insert(payment("d"));
    assert_eq!(d.exec_with_returning(&db).await?.event_id, "d");
    let twice = payments::Entity::insert(payment("d"))
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(&db);
    assert_eq!(twice.await?, 0);

    let found = payments::Entity::find_by_id("b").one(&db).await?;
    assert_eq!(found.map(|model| model.event_id).as_deref(), Some("b"));
    assert!(payments::Entity::find_by_id("e").one(&db).await?.is_none());

    let changed = payments::Entity::update_many()
        .set(payments::ActiveModel {
            note: Set(Some("late".to_owned())),
            ..Default::default()
        })
        .filter(payments::Column::EventId.gt("b"))
        .exec_with_returning(&db)
        .await?;
    assert_eq!(changed.len(), 2);
    let deleted = payments::Entity::delete_by_id("d").exec(&db).await?;
    assert_eq!(deleted.rows_affected, 1);
    assert_eq!(payments::Entity::find().count(&db).await?, 3);

    let pages = payments::Entity::find().order_by_asc(payments::Column::EventId);
    let page = pages.paginate(&db, 2).fetch_page(1).await?;
    assert_eq!(page.len(), 1);
    assert_eq!(page[0].note.as_deref(), Some("late"));
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn entities_are_found_and_changed() {
    let application = Application::new(entities).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["a", "b", "c: late"]);
}

#[derive(FromQueryResult)]
struct Sum {
    notes: i64,
    xid: String,
}

async fn statements(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let xid: String = sqlx::query_scalar("select pg_current_xact_id()::text")
        .fetch_one(&mut *tx)
        .await?;
    let db = tx.sea_orm();
    let backend = db.get_database_backend();
    let insert = "insert into payments (event_id, note) values ($1, $2)";
    let insert = Statement::from_sql_and_values(backend, insert, ["a".into(), QUOTED.into()]);
    assert_eq!(db.execute_raw(insert).await?.rows_affected(), 1);

    let both = "insert into payments values ('b'); insert into payments values ('c')";
    assert_eq!(db.execute_unprepared(both).await?.rows_affected(), 2);

    let select = "select count(note) as notes, pg_current_xact_id()::text as xid
                  from payments where event_id = any ($1)";
    let ids = vec!["a".to_owned(), "b".to_owned()];
    let select = Statement::from_sql_and_values(backend, select, [ids.into()]);
    let sum = Sum::find_by_statement(select).one(&db).await?.unwrap();
    assert_eq!((sum.notes, sum.xid), (1, xid));
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn values_are_bound() {
    let application = Application::new(statements).await;
    assert_eq!(application.deliver().await, processed());
    let a = format!("a: {QUOTED}");
    assert_eq!(application.payments().await, [a.as_str(), "b", "c"]);
}

/// The statements run one after the other, on one connection.
async fn together(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    let db = tx.sea_orm();
    tokio::try_join!(
        payment("a").insert(&db),
        payment("b").insert(&db),
        payment("c").insert(&db),
    )?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn statements_wait_for_each_other() {
    let application = Application::new(together).await;
    assert_eq!(application.deliver().await, processed());
    assert_eq!(application.payments().await, ["a", "b", "c"]);
}
