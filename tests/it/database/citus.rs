//! Tests on Citus, with its coordinator at `CITUS_URL`. They are in addition to the tests of the guarantees, which also
//! run on Citus:
//!
//!     CITUS_URL=postgres://… cargo test --test it -- --include-ignored --test-threads=1
//!
//! Some tests of the guarantees fail on Citus: tests that need a second database, tests that put triggers or row locks
//! on distributed tables, tests that join such tables in a way that Citus does not support, and tests that look on the
//! coordinator for a lock, a session or a statistic that is on a worker.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Keep, presets, prune};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgPool};

use crate::support::{
    Answer, Database, Failing, TestApp, another, assert_accepted, assert_rows, endpoint, github,
    keep_accepted, keeping_by, logged, recover, recover_all, secret, send, send_copies, soon,
    spawn_send, write_effect,
};

/// The interval at which a test looks again.
const POLL: Duration = Duration::from_millis(20);

/// How to connect to each worker.
async fn workers(database: &Database) -> Vec<PgConnectOptions> {
    let nodes: Vec<(String, i32)> = sqlx::query_as(
        "select nodename, nodeport from pg_dist_node where groupid <> 0 order by nodeport",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let options = database.options().ssl_mode(PgSslMode::Disable);
    nodes
        .into_iter()
        .map(|(host, port)| {
            options
                .clone()
                .host(&host)
                .port(u16::try_from(port).unwrap())
        })
        .collect()
}

/// Kills one backend of a server, which makes the server end all sessions. Waits until the server has recovered.
async fn crash(server: &PgConnectOptions) {
    let mut other_session = server.connect().await.unwrap();
    let mut connection = server.connect().await.unwrap();
    // A checkpoint leaves less to recover.
    connection.execute("checkpoint").await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let kill = format!("copy (select) to program 'kill -9 {pid}'");
    let killed = connection.execute(AssertSqlSafe(kill)).await;
    killed.expect_err("the backend was killed");
    while other_session.ping().await.is_ok() {
        tokio::time::sleep(POLL).await;
    }
    while server.connect().await.is_err() {
        tokio::time::sleep(POLL).await;
    }
}

async fn number(database: &Database, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

fn assert_one_is_processed(answers: &[Answer]) {
    assert!(answers.iter().all(|one| one.status == 200), "{answers:?}");
    let processed = answers.iter().filter(|one| one.outcome == "processed");
    assert_eq!(processed.count(), 1, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Citus: CITUS_URL"]
async fn g3_copies_at_once_are_processed_once_over_all_workers() {
    let app = TestApp::github(write_effect).await;
    let routers = [app.router.clone(), app.elsewhere(write_effect).await];
    for n in 0..100 {
        let answers = send_copies(&routers, 4, || github(&n.to_string(), "{}")).await;
        assert_one_is_processed(&answers);
    }
    assert_rows!(app.database, claims: 100, effects: 100);
    // The claims are on all workers, and most transactions involved two workers.
    for table in ["idempotent_webhook.deliveries", "effects"] {
        let on = format!(
            "select count(distinct nodeport) from citus_shards
             where table_name = '{table}'::regclass and shard_size > 0"
        );
        assert_eq!(
            number(&app.database, &on).await,
            workers(&app.database).await.len() as i64
        );
    }
}

/// The kept row of a delivery is on the coordinator, and its claim is on a worker.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Citus: CITUS_URL"]
async fn r15_what_is_accepted_and_sent_again_is_processed_once() {
    let app = keeping_by(keep_accepted, write_effect).await;
    let request = || github("a", "{}");
    endpoint(&app).pause().await.unwrap();
    assert_accepted(vec![spawn_send(&app.router, request())]).await;
    assert_accepted(vec![spawn_send(&app.router, request())]).await;
    endpoint(&app).resume().await.unwrap();
    recover_all(&app).await;
    assert_eq!(app.send(request()).await.outcome, "duplicate");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The 100 keys are distributed by their hashes, so each worker has some of them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Citus: CITUS_URL"]
async fn r13_an_operation_on_many_changes_claims_on_all_workers() {
    let app = TestApp::recovered(
        presets::github(secret()),
        |layer, recovery| {
            let day = Duration::from_secs(24 * 60 * 60);
            let keep = Keep::all(recovery).processed_for(day);
            layer.replay_guard().keep(keep)
        },
        write_effect,
    )
    .await;
    for n in 0..100 {
        let id = n.to_string();
        assert_eq!(app.send(github(&id, id.clone())).await.outcome, "processed");
    }
    let changes = endpoint(&app).reprocess_all(&Filter::new()).await.unwrap();
    assert_eq!((changes.changed, changes.running), (100, 0));
    assert_rows!(app.database, claims: 0, effects: 100);
    let bodies = "select count(*) from idempotent_webhook.bodies";
    assert_eq!(number(&app.database, bodies).await, 0);
    let recovery = recover(&app);
    app.database
        .until(
            "(select bool_and(state = 'processed') from idempotent_webhook.kept_deliveries)
             and 100 = (select count(*) from idempotent_webhook.deliveries)",
        )
        .await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 100, effects: 200);
    assert!(endpoint(&app).forget("0").await.unwrap());
    assert!(!endpoint(&app).forget("0").await.unwrap());
    assert_rows!(app.database, claims: 99, effects: 200);
    assert_eq!(number(&app.database, bodies).await, 99);
}

/// To know whether the delivery has died just now, two times are compared. Both must come from the same node.
#[tokio::test]
#[ignore = "needs a Citus: CITUS_URL"]
async fn r12_what_dies_at_its_first_failure_is_reported_once() {
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, Failing::times(2).handler()).await;
    let log = logged(async {
        for _ in 0..2 {
            assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        }
    })
    .await;
    assert_eq!(log.matches("webhook dead").count(), 1, "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Each node has its own advisory locks. Copies that come through several nodes are distinguished by the unique key of
/// the claim.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Citus: CITUS_URL"]
async fn g3_copies_through_several_nodes_are_processed_once() {
    let app = TestApp::github(write_effect).await;
    let mut routers = vec![app.router.clone()];
    for worker in workers(&app.database).await {
        let pool = PgPool::connect_lazy_with(worker);
        let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
        routers.push(Router::new().route("/", post(write_effect).layer(layer)));
    }
    for n in 0..50 {
        let answers = send_copies(&routers, 6, || github(&n.to_string(), "{}")).await;
        assert_one_is_processed(&answers);
    }
    assert_rows!(app.database, claims: 50, effects: 50);
}

/// Retention deletes from three kinds of tables: distributed tables, reference tables, and tables on the coordinator.
#[tokio::test]
#[ignore = "needs a Citus: CITUS_URL"]
async fn retention_deletes_what_is_old_on_all_workers() {
    let database = Database::new().await;
    database
        .run(
            "create temp table old as
             select n::text as id, sha256(n::text::bytea) as digest, now() - (n - 0.5) * interval '1 hour' as at
             from generate_series(1, 100) as n;
             insert into idempotent_webhook.deliveries (endpoint, delivery_id, digest, received_at)
             select 'test', id, digest, at from old;
             insert into idempotent_webhook.bodies (endpoint, digest, delivery_id, received_at)
             select 'test', digest, id, at from old;
             insert into idempotent_webhook.subjects (endpoint, subject, version, advanced_at)
             select 'test', id, 1, at from old;
             insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             select 'test', at, 'request', 'processed', 1, at from old;
             -- These rows are deleted after a year.
             insert into idempotent_webhook.redelivery_requests (endpoint, tenant, delivery_id, first_at)
             select 'test', '', id, now() - interval '1 year' + (at - now()) + interval '50 hours' from old;
             drop table old",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let age = Duration::from_secs(50 * 60 * 60);
    let holder = another(
        &database,
        "delete from idempotent_webhook.deliveries where delivery_id = '100'",
    )
    .await;
    // All deliveries in the batch of the locked delivery are left for the next round.
    let pruned = soon(prune(&database.pool, age)).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (0, 50));
    holder.rollback().await.unwrap();
    let pruned = soon(prune(&database.pool, age)).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (50, 0));
    for table in [
        "deliveries",
        "bodies",
        "subjects",
        "activity",
        "redelivery_requests",
    ] {
        let left = format!("select count(*) from idempotent_webhook.{table}");
        assert_eq!(number(&database, &left).await, 50, "{table}");
    }
}

/// Citus must know each table that a transaction uses. If Citus does not know a table, it commits on a worker before
/// the coordinator can refuse the commit.
#[tokio::test]
#[ignore = "needs a Citus: CITUS_URL"]
async fn g4_what_the_coordinator_refuses_to_commit_leaves_no_claim() {
    let database = Database::new().await;
    let name = &database.name;
    database
        .run(&format!(
            "alter database {name} set default_transaction_isolation = 'serializable';
             create table stock (item text primary key, left_over int);
             insert into stock values ('a', 1), ('b', 1);
             select citus_add_local_table_to_metadata('stock')"
        ))
        .await;
    // Each handler reads both rows and changes one. If two handlers run at the same time, Postgres refuses one of them
    // at its commit.
    let take = |item: &'static str| {
        async move |mut tx: DedupeTx| {
            let left: i64 = sqlx::query_scalar("select sum(left_over) from stock")
                .fetch_one(&mut *tx)
                .await
                .unwrap();
            assert_eq!(left, 2);
            tokio::time::sleep(Duration::from_millis(300)).await;
            sqlx::query("update stock set left_over = 0 where item = $1")
                .bind(item)
                .execute(&mut *tx)
                .await
                .map_err(|_| StatusCode::CONFLICT)?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, StatusCode>(StatusCode::OK)
        }
    };
    let pool = database.another_pool(5).await;
    let layer =
        |endpoint| IdempotentWebhook::new(pool.clone(), endpoint, presets::github(secret()));
    let router = Router::new()
        .route("/a", post(take("a")).layer(layer("a")))
        .route("/b", post(take("b")).layer(layer("b")));
    let request = |path: &str| {
        let mut request = github("1", "{}");
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    let (a, b) = tokio::join!(send(&router, request("/a")), send(&router, request("/b")));
    let taken = number(&database, "select count(*) from stock where left_over = 0").await;
    let claimed = number(
        &database,
        "select count(*) from idempotent_webhook.deliveries",
    )
    .await;
    assert_eq!((taken, claimed), (1, 1), "{a:?} {b:?}");
    assert_eq!(a.status + b.status, 200 + 503);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Citus: CITUS_URL"]
async fn g5_a_worker_that_crashes_loses_nothing_and_doubles_nothing() {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        sqlx::query("insert into effects (delivery_id) values ($1)")
            .bind(delivery.id().as_str())
            .execute(&mut *tx)
            .await
            .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        Ok::<_, StatusCode>(StatusCode::OK)
    };
    let app = TestApp::github(handler).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut senders = Vec::new();
    for sender in 0..4 {
        let (router, over) = (app.router.clone(), over.clone());
        senders.push(tokio::spawn(async move {
            let (mut acknowledged, mut refused) = (Vec::new(), 0);
            for n in 0.. {
                let id = format!("{sender}-{n}");
                // Sent again until it is acknowledged, as a provider does.
                while send(&router, github(&id, "{}")).await.status != 200 {
                    refused += 1;
                    tokio::time::sleep(POLL).await;
                }
                acknowledged.push(id);
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            (acknowledged, refused)
        }));
    }
    for worker in workers(&app.database).await.iter().cycle().take(6) {
        tokio::time::sleep(Duration::from_millis(700)).await;
        crash(worker).await;
        // Finishes the transactions that were prepared when the worker crashed. Citus itself does so once a minute. The
        // call fails if Citus uses a connection to the worker from before the crash.
        let recover = "select recover_prepared_transactions()";
        while app.database.pool.execute(recover).await.is_err() {
            tokio::time::sleep(POLL).await;
        }
    }
    over.store(true, Ordering::Relaxed);
    let (mut acknowledged, mut refused) = (HashSet::new(), 0);
    for sender in senders {
        let (ids, times) = sender.await.unwrap();
        acknowledged.extend(ids);
        refused += times;
    }
    app.database
        .run("select recover_prepared_transactions()")
        .await;
    assert!(refused > 0, "nothing was in flight at a crash");
    let effects: Vec<String> = sqlx::query_scalar("select delivery_id from effects")
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(effects.len(), acknowledged.len());
    assert_eq!(HashSet::from_iter(effects), acknowledged);
}
