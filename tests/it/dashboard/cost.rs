//! Guarantee D4: how many connections the dashboard uses, and for how long.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn d4_a_page_does_not_wait_for_ever() {
    let database = Database::new().await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy_with(database.options());
    let board = Board::operator(&pool);
    let held = pool.acquire().await.unwrap();
    let answer = soon(board.get("overview")).await;
    assert_eq!(answer.status, 503);
    answer.shows("The database did not answer in time.");
    drop(held);
    board.page("overview").await;

    // Another session holds a lock that the overview waits for.
    let mut blocking = database.pool.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.kept_deliveries")
        .execute(&mut *blocking)
        .await
        .unwrap();
    let answer = soon(board.get("overview")).await;
    assert_eq!(answer.status, 503);
    blocking.rollback().await.unwrap();
    board.page("overview").await;
}

#[tokio::test]
async fn d4_a_database_that_refuses_a_statement_is_not_told_as_a_slow_one() {
    let database = Database::new().await;
    let board = Board::operator(&database.pool);
    database
        .run("alter table idempotent_webhook.kept_deliveries rename column state to another")
        .await;
    let answer = board.get("overview").await;
    assert_eq!(answer.status, 503);
    answer.hides("The database did not answer in time.");
}

/// A statement keeps running in Postgres after the request that waits for it was abandoned.
#[tokio::test(flavor = "multi_thread")]
async fn d4_requests_that_are_abandoned_hold_two_connections() {
    let app = TestApp::github(write_effect).await;
    let pool = app.database.another_pool(10).await;
    let board = Board::of(&pool, Access::read());
    let mut blocking = app.database.pool.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.activity")
        .execute(&mut *blocking)
        .await
        .unwrap();
    for _ in 0..50 {
        let looking = tokio::time::timeout(Duration::from_millis(20), board.get("overview"));
        assert!(looking.await.is_err(), "the page was answered");
    }
    let waiting: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(waiting, 2);
    assert!(pool.size() - u32::try_from(pool.num_idle()).unwrap() <= 2);
    assert_eq!(app.send(github("a", "{}")).await.status, 200);
    blocking.rollback().await.unwrap();
    board.page("overview").await;
}

/// The limit on connections also counts an action that waits for a delivery.
#[tokio::test(flavor = "multi_thread")]
async fn d4_actions_that_are_abandoned_hold_two_connections() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let mut running = database.pool.begin().await.unwrap();
    // Locks the rows as another operation does.
    sqlx::query(
        "select from idempotent_webhook.kept_deliveries
         where delivery_id in (select id::text from generate_series(1, 20) as id)
         for update",
    )
    .execute(&mut *running)
    .await
    .unwrap();
    let pool = database.another_pool(10).await;
    let board = Board::operator(&pool);
    for id in 1..=20 {
        let form = format!("action=discard&endpoint=test&id={id}");
        let asked = board.post("act", &form);
        drop(tokio::time::timeout(Duration::from_millis(50), asked).await);
    }
    let many = format!(
        "action=discard{}",
        (1..=20)
            .map(|id| format!("&key=endpoint%3Dtest%26id%3D{id}"))
            .collect::<String>()
    );
    for _ in 0..12 {
        let asked = board.post("act", &many);
        drop(tokio::time::timeout(Duration::from_millis(50), asked).await);
    }
    let waiting: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert!((1..=2).contains(&waiting), "{waiting}");
    // However many actions wait in the background, the pages get a connection.
    for _ in 0..3 {
        board.page("overview").await;
    }
    running.rollback().await.unwrap();
    database.until(ALL_ENDED).await;
}
