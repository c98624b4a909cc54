//! The programs of the guide, under kills.
//!
//!     cargo build --workspace && cargo test -p race

use idempotent_webhook::testing::TestDelivery;
use race::{Database, Process, Sender, delivery, race};

/// All that a program promises.
async fn is_idempotent(name: &str) -> (Database, [Process; 2]) {
    let database = Database::new().await;
    let processes = race(name, &database).await;
    answers(&database, &processes[0]).await;
    (database, processes)
}

async fn answers(database: &Database, process: &Process) {
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

    // Somebody else is at it for too long.
    let mut tx = database.pool.begin().await.unwrap();
    let claim = "select idempotent_webhook.claim('billing', '', 'evt_answers', null)";
    sqlx::query(claim).execute(&mut *tx).await.unwrap();
    let status = send(&paid).await.unwrap();
    assert!((500..=599).contains(&status), "{status}");
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
    is_idempotent("tokio_postgres").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlx_08() {
    is_idempotent("sqlx_08").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn actix() {
    is_idempotent("actix").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diesel() {
    is_idempotent("diesel").await;
}
