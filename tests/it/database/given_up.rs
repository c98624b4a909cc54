//! Guarantee Growth 3: a delivery may be given up while Postgres still runs its statement. Until the statement ends,
//! its connection counts as used in the pool. It costs nothing else. `under_fire -- backends` tests the same with a
//! whole pool.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{DedupeTx, IdempotentWebhook, presets};
use sqlx::PgPool;

use crate::support::{
    Database, answer, assert_rows, github, logged, secret, send, soon, write_effect,
};

/// Makes a commit so slow that the layer gives it up.
const SLOW_COMMITS: &str = "
    create table commits_wait ();

    create function wait() returns trigger language plpgsql as $$
    begin
        lock table commits_wait in share mode;
        return null;
    end
    $$;

    create constraint trigger waits after insert on effects
        initially deferred for each row execute function wait();
";

const IN_A_COMMIT: &str = "
    exists (
        select from pg_locks where relation = 'commits_wait'::regclass and not granted
    )";

fn application(pool: &PgPool) -> Router {
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .handler_timeout(Duration::from_millis(200))
        .database_timeout(Duration::from_millis(200));
    Router::new()
        .route("/", post(write_effect).layer(layer.clone()))
        .route("/hides", post(sleep_and_hide_it).layer(layer.clone()))
        .route("/slow", post(sleep).layer(layer))
}

/// A handler that answers 200 while its statement is still running.
async fn sleep_and_hide_it(mut tx: DedupeTx) {
    let statement = sqlx::query("select pg_sleep(60)").execute(&mut *tx);
    let _ = tokio::time::timeout(Duration::from_millis(50), statement).await;
}

/// A handler whose statement takes a minute.
async fn sleep(mut tx: DedupeTx) {
    let _ = sqlx::query("select pg_sleep(60)").execute(&mut *tx).await;
}

#[tokio::test]
async fn growth_3_a_commit_that_was_given_up_counts_and_is_not_cancelled() {
    let database = Database::new().await;
    database.run(SLOW_COMMITS).await;
    let pool = database.another_pool(1).await;
    let router = application(&pool);
    // The first delivery registers the window.
    assert_eq!(send(&router, github("first", "{}")).await.status, 200);

    let mut others = database.pool.begin().await.unwrap();
    sqlx::query("lock table commits_wait")
        .execute(&mut *others)
        .await
        .unwrap();
    let refused = answer(503, "failed", "temporarily unavailable");
    assert_eq!(send(&router, github("slow", "{}")).await, refused);
    database.until(IN_A_COMMIT).await;
    // Leaves time for the commit to be answered late.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let log = logged(async {
        assert_eq!(send(&router, github("next", "{}")).await, refused);
    });
    let log = log.await;
    assert!(
        log.contains("Postgres still works on 1 transactions"),
        "{log}"
    );
    assert_eq!(pool.size(), 1);
    assert_rows!(database, claims: 1, effects: 1);

    others.rollback().await.unwrap();
    database.until("(select count(*) from effects) = 2").await;
    let duplicate = send(&router, github("slow", "{}")).await;
    assert_eq!(duplicate, answer(200, "duplicate", ""));
    assert_eq!(send(&router, github("next", "{}")).await.status, 200);
    assert_rows!(database, claims: 3, effects: 3);
}

#[tokio::test]
async fn growth_3_a_statement_whose_handler_was_given_up_is_cancelled() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let router = application(&pool);
    assert_eq!(send(&router, github("first", "{}")).await.status, 200);
    for path in ["/slow", "/hides"] {
        let mut slow = github(path, "{}");
        *slow.uri_mut() = path.parse().unwrap();
        assert_eq!(send(&router, slow).await.status, 503, "{path}");
        let runs = "exists (
            select from pg_stat_activity where state = 'active' and query like '%pg_sleep(60)'
        )";
        database.until(&format!("not {runs}")).await;
        // The connection can be used again, or was replaced.
        let next = format!("after{path}");
        soon(async {
            while send(&router, github(&next, "{}")).await.status != 200 {
                // If this loop had no pause, its refused deliveries would leave no time for other tasks.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
    assert_rows!(database, claims: 3, effects: 3);
}

/// A pool that closes waits for its connections, except for a connection that was given up.
#[tokio::test]
async fn growth_3_a_pool_closes_while_postgres_works_on() {
    let database = Database::new().await;
    database.run(SLOW_COMMITS).await;
    let pool = database.another_pool(1).await;
    let router = application(&pool);
    let mut others = database.pool.begin().await.unwrap();
    sqlx::query("lock table commits_wait")
        .execute(&mut *others)
        .await
        .unwrap();
    assert_eq!(send(&router, github("slow", "{}")).await.status, 503);
    database.until(IN_A_COMMIT).await;
    soon(pool.close()).await;
    others.rollback().await.unwrap();
    // The commit goes on to its end.
    database.until("(select count(*) from effects) = 1").await;
    assert_rows!(database, claims: 1, effects: 1);
}
