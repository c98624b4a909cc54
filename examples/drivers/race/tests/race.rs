//! The programs of the guide, while they are killed again and again.
//!
//!     cargo build --workspace && cargo test -p race

use std::time::Duration;

use idempotent_webhook::recovery::Reprocessed;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Endpoint, prune};
use race::{Database, Process, Sender, delivery, race};

/// The guide's SQL, which programs in other languages use to claim a delivery.
#[tokio::test]
async fn the_sql_of_the_guide() {
    let database = Database::new().await;
    idempotent_webhook::migrate(&database.pool).await.unwrap();
    let page = include_str!("../../../../src/documentation/drivers.md");
    let (_, sql) = page.split_once("```sql\nbegin;").unwrap();
    let (sql, _) = sql.split_once("```").unwrap();
    let sql = format!("begin;{sql}");
    database.run(&sql).await;
    assert!(database.processed().await.contains("evt_1Qx"));
}

/// Runs the race with a program, and checks its answers.
async fn is_idempotent(name: &str, busy: u16) -> (Database, [Process; 2]) {
    let database = Database::new().await;
    let processes = race(name, &database).await;
    answers(&database, &processes[0], busy).await;
    (database, processes)
}

/// `busy` is the status while another process works on the event.
async fn answers(database: &Database, process: &Process, busy: u16) {
    let sender = Sender::default();
    let before = database.number("select count(*) from payments").await;
    let paid = delivery("evt_answers");
    let send = async |delivery: &TestDelivery| sender.send(&process.url, delivery).await;
    assert_eq!(send(&paid.tampered()).await, Some(401));
    assert_eq!(send(&paid.unsigned()).await, Some(401));
    assert_eq!(send(&paid.expired()).await, Some(401));
    let other = paid.clone().event_type("customer.created");
    assert_eq!(send(&other).await, Some(200));
    assert_eq!(
        database.number("select count(*) from payments").await,
        before
    );

    // Another session holds the event for too long.
    let mut tx = database.pool.begin().await.unwrap();
    let claim = "select idempotent_webhook.claim('billing', '', 'evt_answers', null)";
    sqlx::query(claim).execute(&mut *tx).await.unwrap();
    assert_eq!(send(&paid).await, Some(busy));
    tx.rollback().await.unwrap();
    assert_eq!(send(&paid).await, Some(200));
    assert_eq!(send(&paid).await, Some(200));
    assert_eq!(
        database.number("select count(*) from payments").await,
        before + 1
    );
    database.until_no_transaction_is_open().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokio_postgres() {
    is_idempotent("tokio_postgres", 503).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlx_08() {
    is_idempotent("sqlx_08", 503).await;
}

/// Runs only the race. The SeaORM program has its own tests, which check its answers.
#[tokio::test(flavor = "multi_thread")]
async fn sea_orm() {
    race("sea_orm", &Database::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn actix() {
    is_idempotent("actix", 503).await;
}

/// The program with Diesel uses the layer, so this also tests recovery and the archive.
#[tokio::test(flavor = "multi_thread")]
async fn diesel() {
    let (database, [process, _other]) = is_idempotent("diesel", 500).await;
    let kept = "select count(*) from idempotent_webhook.kept_deliveries where state <> 'processed'";
    database.until(kept, 0).await;
    database.assert_nothing_twice().await;

    // The delivery fails and is kept. When recovery runs the delivery, the program's claim ends the
    // kept row.
    let sender = Sender::default();
    database.run("alter table payments rename to away").await;
    let failed = sender.send(&process.url, &delivery("evt_kept")).await;
    assert_eq!(failed, Some(500));
    assert_eq!(database.number(kept).await, 1);
    database.run("alter table away rename to payments").await;
    let endpoint = Endpoint::new(database.pool.clone(), "billing");
    endpoint.retry("evt_kept").await.unwrap();
    let payments = "select count(*) from payments where event_id = 'evt_kept'";
    database.until(payments, 1).await;
    database.until(kept, 0).await;

    // The delivery is reprocessed from the archive.
    database
        .run("delete from payments where event_id = 'evt_kept'")
        .await;
    assert_eq!(
        endpoint.reprocess("evt_kept").await.unwrap(),
        Reprocessed::Due
    );
    database.until(payments, 1).await;
    database.until(kept, 0).await;

    let claims = "select count(*) from idempotent_webhook.deliveries";
    let before = database.number(claims).await;
    database
        .run(
            "update idempotent_webhook.deliveries
             set received_at = received_at - interval '100 days'
             where delivery_id = 'evt_1'",
        )
        .await;
    let pruned = prune(&database.pool, Duration::from_secs(45 * 24 * 60 * 60)).await;
    assert_eq!(pruned.unwrap().deliveries, 1);
    assert_eq!(database.number(claims).await, before - 1);
    database.until_no_transaction_is_open().await;
}
