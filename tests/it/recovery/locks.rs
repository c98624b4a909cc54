//! Guarantees R5 and R13: if several transactions change a row at the same time, they neither undo each other's changes
//! nor deadlock.

use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::recovery::Discarded;
use idempotent_webhook::{DedupeTx, Delivery, Endpoint, prune};
use sqlx::{AssertSqlSafe, Executor, PgPool, Row};

use crate::support::{
    Database, Failing, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, TestApp, another, answer, assert_kept,
    assert_rows, endpoint, gate, github, insert_effect, keep_accepted, keeping_by, recover, send,
    soon, spawn_send, write_effect,
};

/// Inserts two dead deliveries.
async fn insert_dead(database: &Database) {
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'a', 'dead', 1, now()), ('test', 'b', 'dead', 1, now() - interval '1 h')",
        )
        .await;
}

/// Inserts the delivery `due-1`, which is processed. Its row was left behind because its process was killed.
async fn insert_due_and_processed(database: &Database) {
    database.insert_due(1).await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'due-1')",
        )
        .await;
}

#[tokio::test]
async fn r15_what_another_process_accepts_at_the_same_instant_is_accepted_once() {
    let failing = Failing::times(0);
    let app = keeping_by(keep_accepted, failing.handler()).await;
    let other = another(
        &app.database,
        "insert into idempotent_webhook.kept_deliveries
             (endpoint, delivery_id, state, attempts, takes, next_attempt_at, taken_by)
         values ('test', 'a', 'due', 1, 1, now(), 1)",
    )
    .await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    other.commit().await.unwrap();
    assert_eq!(sent.await.unwrap(), answer(200, "accepted", ""));
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert!(failing.attempts().is_empty());
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_discard_waits_for_the_attempt_that_runs_and_leaves_what_that_has_processed() {
    for (status, discarded) in [
        (StatusCode::OK, Discarded::Processed),
        (StatusCode::CONFLICT, Discarded::Discarded),
    ] {
        let (mut gate, way) = gate();
        let handler = move |mut tx: DedupeTx, delivery: Delivery| {
            let way = way.clone();
            async move {
                insert_effect(&mut tx, &delivery).await.unwrap();
                way.pass().await;
                status
            }
        };
        let app = TestApp::keeping(|keep| keep, handler).await;
        app.database.insert_due(1).await;
        let recovery = recover(&app);
        gate.reached().await;
        let discarding = tokio::spawn({
            let endpoint = endpoint(&app);
            async move { endpoint.discard("due-1").await }
        });
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        gate.open();
        assert_eq!(soon(discarding).await.unwrap().unwrap(), discarded);
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
        let committed = i64::from(discarded == Discarded::Processed);
        assert_rows!(app.database, claims: committed, effects: committed);
    }
}

/// The recovery attempt waits for another attempt, and then finds that there is nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_does_not_wait_for_an_attempt_that_waits_itself() {
    let failing = Failing::times(0);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    insert_due_and_processed(&app.database).await;
    let lock = include_str!("../../../src/recovery/kept/lock.sql")
        .replace("$1", "'test'")
        .replace("$2", "''")
        .replace("$3", "'due-1'")
        .replace("$4", "'0'");
    let another = another(&app.database, &lock).await;
    let recovery = recover(&app);
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    assert!(soon(endpoint(&app).forget("due-1")).await.unwrap());
    another.rollback().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert!(failing.attempts().is_empty());
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_and_the_claim_of_what_was_processed_are_no_deadlock() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    insert_due_and_processed(&app.database).await;
    app.database
        .run(
            "create function wait() returns trigger language plpgsql as $$
             begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
             create trigger wait before insert on idempotent_webhook.deliveries
                for each row execute function wait()",
        )
        .await;
    let slow = another(&app.database, "select pg_advisory_xact_lock(1)").await;
    let recovery = recover(&app);
    let claiming = ONE_WAITS_FOR_A_LOCK;
    app.database.until(claiming).await;
    let forgetting = tokio::spawn({
        let endpoint = endpoint(&app);
        async move { endpoint.forget("due-1").await }
    });
    let forgets_or_waits = "not exists (select from idempotent_webhook.kept_deliveries)
         or (select count(*) from pg_stat_activity where wait_event_type = 'Lock') > 1";
    app.database.until(forgets_or_waits).await;
    drop(slow);
    assert!(soon(forgetting).await.unwrap().unwrap());
    recovery.stop().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Asserts that a change locks the row of its delivery before it locks anything in `table`. While the change waits for
/// the row, a transaction that holds the row can still lock `table`, so there is no deadlock.
async fn changes_the_row_before<T>(
    table: &str,
    app: &TestApp,
    changes: impl Future<Output = T>,
) -> T {
    let row = "select from idempotent_webhook.kept_deliveries for no key update";
    let mut tx = another(&app.database, row).await;
    let locks = async {
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        let later = format!("select from idempotent_webhook.{table} for update nowait");
        tx.execute(sqlx::raw_sql(AssertSqlSafe(later)))
            .await
            .unwrap();
        tx.rollback().await.unwrap();
    };
    tokio::join!(changes, locks).0
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_the_end_of_an_attempt_is_no_deadlock_with_a_discard_or_a_failed_attempt() {
    for table in ["kept_requests", "kept_endpoints"] {
        let app = TestApp::keeping(|keep| keep, write_effect).await;
        app.database.insert_due(1).await;
        // The endpoint has failed before.
        app.database
            .run(
                "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids)
                 values ('test', array['b'])",
            )
            .await;
        let sent = send(&app.router, github("due-1", "{}"));
        let answer = changes_the_row_before(table, &app, sent).await;
        assert_eq!(answer.outcome, "processed");
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// All of these operations lock the row first. A reprocess then locks the claim.
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_is_no_deadlock_with_a_discard_or_a_reprocess() {
    for table in ["kept_requests", "deliveries"] {
        let app = TestApp::keeping(|keep| keep, write_effect).await;
        insert_due_and_processed(&app.database).await;
        let endpoint = endpoint(&app);
        let forgets = endpoint.forget("due-1");
        let forgotten = changes_the_row_before(table, &app, forgets).await;
        assert!(forgotten.unwrap(), "{table}");
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_waits_for_another_one_at_any_default_isolation_level() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let options = app.database.options();
    let options = options.options([("default_transaction_isolation", "serializable")]);
    let serializable = Endpoint::new(PgPool::connect_lazy_with(options), "test");
    let forgets = "delete from idempotent_webhook.deliveries";
    let tx = another(&app.database, forgets).await;
    let forgetting = tokio::spawn(async move { serializable.forget("a").await });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    tx.commit().await.unwrap();
    assert!(!soon(forgetting).await.unwrap().unwrap());
    assert_rows!(app.database, claims: 0, effects: 1);
}

/// A delivery can stop being processed while retention runs, for example because an operator reprocesses it.
#[tokio::test(flavor = "multi_thread")]
async fn r5_retention_leaves_what_is_not_processed_any_more() {
    let database = Database::new().await;
    database.has_window("test", "3 days").await;
    insert_dead(&database).await;
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    let processed = "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
        values ('test', 'a'), ('test', 'b')";
    database.run(processed).await;
    let forgets =
        "update idempotent_webhook.kept_deliveries set takes = takes + 1 where delivery_id = 'a';
        delete from idempotent_webhook.deliveries where delivery_id = 'a'";
    let forgets = another(&database, forgets).await;
    // Retention leaves a locked delivery alone.
    soon(prune(&database.pool, year)).await.unwrap();
    forgets.commit().await.unwrap();
    soon(prune(&database.pool, year)).await.unwrap();
    let is_left =
        "(select array_agg(delivery_id) from idempotent_webhook.kept_deliveries) = array['a']";
    database.until(is_left).await;
}

/// After reconciliation has found the delivery in the provider's list, its webhook arrives and is discarded.
#[tokio::test]
async fn n2_what_was_set_aside_since_it_was_listed_is_not_kept() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.discarded (endpoint, delivery_id) values ('test', 'a')",
        )
        .await;
    for (is_listed, is_kept) in [(true, false), (false, true)] {
        let accept = include_str!("../../../src/recovery/kept/accept.sql");
        let accepted = sqlx::query(accept)
            .bind("test")
            .bind(vec![""])
            .bind(vec!["a"])
            .bind(vec![None::<&str>])
            .bind(vec![None::<&str>])
            .bind(vec![0.0])
            .bind(vec![None::<i64>])
            .bind(vec![2])
            .bind(vec!["POST"])
            .bind(vec!["/"])
            .bind(vec![&b""[..]])
            .bind(vec![&b"{}"[..]])
            .bind(vec![None::<f64>])
            .bind(true)
            .bind(is_listed)
            .bind(None::<sqlx::postgres::types::PgInterval>)
            .bind(None::<&str>)
            .fetch_one(&database.pool)
            .await
            .unwrap();
        let takes: Option<i64> = accepted.get("takes");
        assert_eq!(takes.is_some(), is_kept, "{is_listed}");
    }
}
