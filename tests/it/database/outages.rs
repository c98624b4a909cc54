//! Guarantee G10: the database may be unreachable. Connections of the pool may be dead, or in a transaction that was
//! left open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{IdempotentWebhook, presets};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, Row};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::late_claim::begin_and_write;
use crate::support::{
    Database, Failing, TestApp, answer, assert_rows, gated, github, github_delivery, secret, send,
    soon, spawn_send, write_effect,
};

const UNAVAILABLE: &str = "temporarily unavailable";

#[tokio::test]
async fn g10_an_unreachable_database_is_a_503_and_a_forged_request_still_a_401() {
    let nowhere = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(1)
        .username("nobody");
    let pool = PgPoolOptions::new().connect_lazy_with(nowhere);
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
        .database_timeout(Duration::from_millis(200));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(503, "failed", UNAVAILABLE)
    );
    let forged = github_delivery().id("a").tampered();
    assert_eq!(send(&router, forged.request()).await.status, 401);
}

#[tokio::test]
async fn g10_an_exhausted_pool_is_a_503_and_recovers() {
    let app = TestApp::github_with(
        |layer| layer.database_timeout(Duration::from_millis(200)),
        write_effect,
    )
    .await;
    let mut taken = Vec::new();
    for _ in 0..5 {
        taken.push(app.database.pool.acquire().await.unwrap());
    }
    // The pool's own timeout is longer than the layer's.
    assert_eq!(
        soon(app.send(github("a", "{}"))).await,
        answer(503, "failed", UNAVAILABLE)
    );
    drop(taken);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn g10_a_stray_transaction_of_the_pool_is_not_committed() {
    let app = TestApp::github(write_effect).await;
    app.database.run("create table stray (id int)").await;
    for sql in [
        "begin",
        "begin; insert into stray values (1)",
        "begin; select no_such_column",
    ] {
        // Leaves this state on every connection of the pool.
        let mut connections = Vec::new();
        for _ in 0..5 {
            let mut connection = app.database.pool.acquire().await.unwrap();
            let _ = connection.execute(sqlx::raw_sql(sql)).await;
            connections.push(connection);
        }
        drop(connections);
        assert_eq!(
            app.send(github(&sql.len().to_string(), "{}")).await,
            answer(200, "processed", "done"),
            "{sql}"
        );
    }
    assert_rows!(app.database, claims: 3, effects: 3);
    let mut connection = PgConnection::connect_with(&app.database.options())
        .await
        .unwrap();
    let stray: i64 = sqlx::query_scalar("select count(*) from stray")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(stray, 0);
}

/// The layer's BEGIN shows whether a connection is alive, regardless of whether the pool is set to ping it.
#[tokio::test]
async fn g10_dead_connections_of_the_pool_cost_no_delivery() {
    let database = Database::new().await;
    for (id, asks) in [("a", true), ("b", false)] {
        let pool = PgPoolOptions::new()
            .max_connections(5)
            .test_before_acquire(asks)
            .connect_lazy_with(database.options());
        let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
        let router = Router::new().route("/", post(write_effect).layer(layer));

        let mut connections = Vec::new();
        for _ in 0..5 {
            connections.push(pool.acquire().await.unwrap());
        }
        drop(connections);
        while pool.num_idle() < 5 {
            tokio::task::yield_now().await;
        }
        database
            .run(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid()",
            )
            .await;
        assert_eq!(
            send(&router, github(id, "{}")).await,
            answer(200, "processed", "done")
        );
    }
    assert_rows!(database, claims: 2, effects: 2);
}

/// The layer takes idle connections without the pool's ping. This pool has the application's own check instead of the
/// ping, and the layer runs that check.
#[tokio::test]
async fn g10_a_test_of_connections_that_the_application_has_set_is_run_without_the_pools_ping() {
    let database = Database::new().await;
    let tests = Arc::new(AtomicU32::new(0));
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false)
        .before_acquire({
            let tests = tests.clone();
            move |_, _| {
                tests.fetch_add(1, Ordering::Relaxed);
                Box::pin(async { Ok(true) })
            }
        })
        .connect_with(database.options())
        .await
        .unwrap();
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret())).without_activity();
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let before = tests.load(Ordering::Relaxed);
    for (id, more) in [("a", 1), ("b", 2)] {
        let answered = send(&router, github(id, "{}")).await;
        assert_eq!(answered, answer(200, "processed", "done"));
        assert_eq!(tests.load(Ordering::Relaxed), before + more);
    }
    assert_rows!(database, claims: 2, effects: 2);
}

/// Relays all messages until a delivery is committed. If the network fails at that point, nothing more arrives on
/// either side, and neither side notices.
async fn relay_until_the_commit(
    mut client: TcpStream,
    mut server: UnixStream,
    fails: Arc<AtomicBool>,
) {
    let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
    let mut commits = false;
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let Ok(length @ 1..) = read else { return };
                server.write_all(&sent[..length]).await.unwrap();
                commits = String::from_utf8_lossy(&sent[..length]).contains("COMMIT");
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                client.write_all(&answered[..length]).await.unwrap();
                if commits && fails.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

/// The pool pings each returned connection and waits for the answer, so a silent connection could occupy its place in
/// the pool.
#[tokio::test]
async fn g10_connections_that_fall_silent_after_the_commit_do_not_keep_their_places_of_the_pool() {
    let database = Database::new().await;
    let fails = Arc::new(AtomicBool::new(false));
    let options = database.options_through({
        let fails = fails.clone();
        move |client, server| relay_until_the_commit(client, server, fails.clone())
    });
    let pool = PgPoolOptions::new()
        .max_connections(3)
        .connect_lazy_with(options.await);
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .max_connections(3)
        .without_activity();
    let (mut gate, handler) = gated();
    let router = Router::new().route("/", post(handler).layer(layer));
    let mut process = async |ids: &[&str]| {
        let send = |id: &&str| spawn_send(&router, github(id, "{}"));
        let sent: Vec<_> = ids.iter().map(send).collect();
        for _ in &sent {
            soon(gate.reached()).await;
        }
        for _ in &sent {
            gate.open();
        }
        for sent in sent {
            assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
        }
    };
    // The first delivery of a process commits another transaction before its claim.
    process(&["first"]).await;
    fails.store(true, Ordering::Relaxed);
    process(&["a", "b", "c"]).await;
    fails.store(false, Ordering::Relaxed);
    let places_are_free = async {
        while pool.size() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(places_are_free).await;
    process(&["d", "e", "f"]).await;
    assert_rows!(database, claims: 7, effects: 7);
}

/// In sqlx 0.9.0, `pool.begin()` can return a connection to the pool in the middle of a transaction if the call is
/// cancelled (transact-rs/sqlx #4393). The test cancels it at a different moment in each round.
#[tokio::test(flavor = "multi_thread")]
async fn g10_a_cancelled_begin_elsewhere_does_no_harm() {
    let app = TestApp::github(write_effect).await;
    for round in 0..200 {
        let moment = Duration::from_micros(5 * round);
        let _ = tokio::time::timeout(moment, app.database.pool.begin()).await;
        let answered = app.send(github(&round.to_string(), "{}")).await;
        assert_eq!(answered, answer(200, "processed", "done"));
        // The rows are counted on another connection, so they are committed.
        let round = i64::try_from(round).unwrap() + 1;
        assert_rows!(app.database, claims: round, effects: round);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g10_a_database_that_was_down_is_used_again_without_a_restart() {
    let server = ThrowawayPostgres::start(Durability::Durable).await.unwrap();
    let pool = PgPoolOptions::new().connect_lazy_with(server.options("postgres"));
    idempotent_webhook::migrate(&pool).await.unwrap();
    pool.execute("create table effects (delivery_id text)")
        .await
        .unwrap();
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .database_timeout(Duration::from_secs(2));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let processed = answer(200, "processed", "done");
    assert_eq!(send(&router, github("a", "{}")).await, processed);

    tokio::task::block_in_place(|| server.crash()).unwrap();
    assert_eq!(
        send(&router, github("b", "{}")).await,
        answer(503, "failed", UNAVAILABLE)
    );
    let forged = github_delivery().id("b").tampered();
    assert_eq!(send(&router, forged.request()).await.status, 401);

    server.start_again().await.unwrap();
    assert_eq!(send(&router, github("b", "{}")).await, processed);
    let duplicate = answer(200, "duplicate", "");
    assert_eq!(send(&router, github("a", "{}")).await, duplicate);
    let effects: i64 = sqlx::query_scalar("select count(*) from effects")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(effects, 2);
}

/// Postgres ends a session that is idle for too long, with an error that stays unread in the socket.
#[tokio::test]
async fn g10_sessions_that_postgres_ended_for_idleness_are_replaced_without_the_pools_ping() {
    let database = Database::new().await;
    let options = database
        .options_over_tcp()
        .await
        .application_name("unpinged");
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .test_before_acquire(false)
        .connect_lazy_with(options.options([("idle_session_timeout", "1s")]));
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    for id in ["a", "b"] {
        let mut connections = Vec::new();
        for _ in 0..5 {
            connections.push(pool.acquire().await.unwrap());
        }
        drop(connections);
        let idle = async {
            while pool.num_idle() < 5 {
                tokio::task::yield_now().await;
            }
        };
        soon(idle).await;
        database
            .until(
                "not exists (
                    select from pg_stat_activity
                    where datname = current_database() and application_name = 'unpinged'
                )",
            )
            .await;
        assert_eq!(
            send(&router, github(id, "{}")).await,
            answer(200, "processed", "done")
        );
    }
    assert_rows!(database, claims: 2, effects: 2);
}

/// A connection of the pool is in a state in which no claim succeeds.
#[tokio::test]
async fn g10_a_connection_that_no_claim_succeeds_on_is_closed_and_another_one_taken() {
    let app = TestApp::github(write_effect).await;
    app.database
        .run("drop role if exists nobody; create role nobody")
        .await;
    for (number, sql) in [
        "deallocate all",
        "discard all",
        "set default_transaction_read_only = on",
        "set role nobody",
    ]
    .into_iter()
    .enumerate()
    {
        let pool = app.database.another_pool(1).await;
        let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
        let late = layer.clone().late_claim();
        let router = Router::new()
            .route("/", post(write_effect).layer(layer))
            .route("/late", post(begin_and_write).layer(late));
        let backend = async || -> i32 {
            let mut connection = pool.acquire().await.unwrap();
            let row = connection.fetch_one(sqlx::raw_sql("select pg_backend_pid()::text"));
            let pid: String = row.await.unwrap().get(0);
            pid.parse().unwrap()
        };
        let before = github(&format!("before-{number}"), "{}");
        assert_eq!(send(&router, before).await.status, 200);
        pool.execute(sqlx::raw_sql(sql)).await.unwrap();
        let late = github_delivery().id(format!("late-{number}")).uri("/late");
        assert_eq!(
            send(&router, late.request()).await,
            answer(200, "processed", "done"),
            "late, {sql}"
        );
        pool.execute(sqlx::raw_sql(sql)).await.unwrap();
        let poisoned = backend().await;
        for round in 0..2 {
            assert_eq!(
                send(&router, github(&format!("{number}-{round}"), "{}")).await,
                answer(200, "processed", "done"),
                "{sql}"
            );
        }
        assert_ne!(backend().await, poisoned, "{sql}");
    }
    assert_rows!(app.database, claims: 16, effects: 16);
}

/// The claims are counted by a sequence, which also counts the inserts that are rolled back.
#[tokio::test]
async fn a_claim_that_loses_its_connection_is_tried_on_one_more() {
    let app = TestApp::github(write_effect).await;
    app.database
        .run(
            "create sequence claims;
             create function lose() returns trigger language plpgsql as $$
             begin
                 perform nextval('claims');
                 perform pg_terminate_backend(pg_backend_pid());
                 return new;
             end $$;
             create trigger lose before insert on idempotent_webhook.deliveries
                 for each row execute function lose()",
        )
        .await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(503, "failed", UNAVAILABLE)
    );
    app.database
        .until("2 = (select last_value from claims)")
        .await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Refuses each insert into a table, and counts the inserts by a sequence, because a rollback does not undo its count.
async fn refuse_inserts(database: &Database, table: &str, code: &str) {
    database
        .run(&format!(
            "create sequence refused;
             create function refuse() returns trigger language plpgsql as $$
             begin
                 perform nextval('refused');
                 raise exception 'no' using errcode = '{code}';
             end $$;
             create trigger refuse before insert on idempotent_webhook.{table}
                 for each row execute function refuse()"
        ))
        .await;
}

async fn refused(database: &Database) -> i64 {
    sqlx::query_scalar("select last_value from refused")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_claim_that_always_conflicts_is_tried_a_number_of_times() {
    let app = TestApp::github(write_effect).await;
    refuse_inserts(&app.database, "deliveries", "40001").await;
    assert_eq!(
        soon(app.send(github("a", "{}"))).await,
        answer(503, "failed", UNAVAILABLE)
    );
    let tries = refused(&app.database).await;
    assert!((3..100).contains(&tries), "{tries}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// If keeping a failure fails, the layer tries once more on another connection. If the first try failed because the
/// wait for another attempt timed out, the second try does not wait.
#[tokio::test]
async fn a_failure_that_cannot_be_kept_is_tried_on_one_more_connection_or_without_the_wait() {
    for code in ["XX000", "55P03", "57014"] {
        let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
        refuse_inserts(&app.database, "kept_deliveries", code).await;
        let sent = soon(app.send(github("a", "{}"))).await;
        assert_eq!(sent, answer(500, "failed", ""), "{code}");
        assert_eq!(refused(&app.database).await, 2, "{code}");
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// With a late claim, the lookup of the delivery is a statement of its own, before the claim.
#[tokio::test]
async fn a_look_at_a_delivery_that_fails_on_any_connection_is_an_error() {
    let app = TestApp::github_with(IdempotentWebhook::late_claim, begin_and_write).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let rename = "alter table idempotent_webhook.deliveries rename";
    app.database
        .run(&format!("{rename} delivery_id to id"))
        .await;
    assert_eq!(
        soon(app.send(github("b", "{}"))).await,
        answer(503, "failed", UNAVAILABLE)
    );
    app.database
        .run(&format!("{rename} id to delivery_id"))
        .await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Each connection that the pool opens is already in a transaction.
#[tokio::test]
async fn unusable_connections_are_replaced_as_often_as_the_pool_has_connections() {
    let database = Database::new().await;
    let made = Arc::new(AtomicU32::new(0));
    let pool = PgPoolOptions::new()
        .max_connections(3)
        .after_connect({
            let made = made.clone();
            move |connection, _| {
                made.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move {
                    connection.execute("begin; select 1").await?;
                    Ok(())
                })
            }
        })
        .connect_lazy_with(database.options());
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
        .database_timeout(Duration::from_secs(20));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    assert_eq!(
        soon(send(&router, github("a", "{}"))).await,
        answer(503, "failed", UNAVAILABLE)
    );
    // Each of the two tries of the claim uses the connections that were in the pool, and one new connection.
    assert_eq!(made.load(Ordering::Relaxed), 2 * 4);
    assert_rows!(database, claims: 0, effects: 0);
}
