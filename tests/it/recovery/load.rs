//! Guarantees R9 and G10: the load that recovery puts on Postgres while deliveries are due and none
//! can be taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{IdempotentWebhook, Keep, Recovery, presets};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::net::TcpListener;

use crate::support::{Database, Process, assert_kept, assert_rows, keep, secret, write_effect};

/// For how long a test counts transactions.
const TIME: Duration = Duration::from_secs(5);

/// The limit on transactions in [`TIME`]. Recovery needs far fewer. A loop without a wait would
/// make thousands per second.
const MOST: i64 = 20 * 5;

/// A pool for recovery. The test closes all its connections, because Postgres counts the work of a
/// connection only when the connection ends.
async fn pool(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(5)
        .connect_lazy_with(options)
}

/// How many transactions a recovery with these options starts in [`TIME`].
async fn transactions(database: &Database, options: PgConnectOptions) -> i64 {
    let transactions = "select xact_commit + xact_rollback from pg_stat_database
        where datname = current_database()";
    let pool = pool(options).await;
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .keep(Keep::failed(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let before = database.count(transactions).await;
    let task = recovery.spawn(router);
    tokio::time::sleep(TIME).await;
    task.stop().await;
    pool.close().await;
    database
        .until(
            "(select count(*) = 0 from pg_stat_activity
              where datname = current_database() and application_name = 'counted')",
        )
        .await;
    database.count(transactions).await - before
}

/// A due delivery may be locked for long, for example by the transaction of a request that has
/// claimed it.
#[tokio::test(flavor = "multi_thread")]
async fn r9_a_delivery_that_is_due_and_locked_is_looked_at_once_a_second() {
    let database = Database::new().await;
    database.insert_due(1).await;
    let mut tx = database.another_pool(1).await.begin().await.unwrap();
    sqlx::query("select from idempotent_webhook.kept_deliveries for update")
        .execute(&mut *tx)
        .await
        .unwrap();
    let options = database.options().application_name("counted");
    let transactions = transactions(&database, options).await;
    assert!(transactions < MOST, "{transactions}");
    tx.rollback().await.unwrap();
    assert_kept!(database, "due", attempts: 1, retries: 0);

    let process = Process::new(database.another_pool(5).await, keep, write_effect);
    let attempts = process.recovery.run_due(&process.router).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_rows!(database, claims: 1, effects: 1);
}

/// Postgres takes no writes if it is a standby, for example.
#[tokio::test(flavor = "multi_thread")]
async fn g10_a_postgres_that_takes_no_writes_is_asked_seldom() {
    let database = Database::new().await;
    database.insert_due(1).await;
    let options = database
        .options()
        .application_name("counted")
        .options([("default_transaction_read_only", "on")]);
    let transactions = transactions(&database, options).await;
    assert!(transactions < MOST, "{transactions}");
    assert_kept!(database, "due", attempts: 1, retries: 0);
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn g10_a_postgres_that_is_away_is_asked_seldom() {
    let connections = Arc::new(AtomicU32::new(0));
    let away = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(away.local_addr().unwrap().port());
    tokio::spawn({
        let connections = connections.clone();
        async move {
            loop {
                // Hangs up.
                drop(away.accept().await.unwrap());
                connections.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let pool = pool(options).await;
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
        .keep(Keep::failed(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let task = recovery.spawn(router);
    tokio::time::sleep(TIME).await;
    let connections = connections.load(Ordering::Relaxed);
    assert!(i64::from(connections) < MOST, "{connections}");
    drop(task);
}
