//! Guarantee G9: how many connections of the pool deliveries hold, what the operator learns when no connection is free,
//! and which messages are sent on a connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, presets};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor, PgPool};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::support::{
    Database, answer, assert_rows, gated, github, insert_effect, logged, secret, send, soon,
    spawn_send, write_effect,
};

fn layer(pool: &PgPool, endpoint: &'static str) -> IdempotentWebhook {
    IdempotentWebhook::new(pool.clone(), endpoint, presets::github(secret()))
}

/// A handler that also reads on a second connection of the pool.
fn reads(pool: &PgPool) -> MethodRouter {
    let pool = pool.clone();
    post(async move |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await.unwrap();
        match pool.execute("select pg_sleep(0.01)").await {
            Ok(_) => StatusCode::OK,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    })
}

async fn assert_all_are_processed(deliveries: usize, routers: &[Router]) {
    let sending: Vec<_> = (0..deliveries)
        .flat_map(|id| routers.iter().map(move |router| (id, router)))
        .map(|(id, router)| spawn_send(router, github(&id.to_string(), "{}")))
        .collect();
    for sent in sending {
        assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
    }
}

#[tokio::test]
async fn g9_handlers_that_read_through_the_pool_do_not_stop_each_other() {
    let database = Database::new().await;
    let pool = database.another_pool(20).await;
    let router = Router::new().route("/", reads(&pool).layer(layer(&pool, "test")));
    assert_all_are_processed(40, &[router]).await;
    assert_rows!(database, claims: 40, effects: 40);
}

#[tokio::test]
async fn g9_a_connection_limit_leaves_connections_to_the_handlers() {
    let database = Database::new().await;
    let pool = database.another_pool(5).await;
    let limited = layer(&pool, "test")
        .max_connections(2)
        .database_timeout(Duration::from_secs(20));
    let router = Router::new().route("/", reads(&pool).layer(limited));
    assert_all_are_processed(50, &[router]).await;
    assert_rows!(database, claims: 50, effects: 50);
}

#[tokio::test]
async fn g9_layers_that_share_connections_do_not_stop_each_other() {
    let database = Database::new().await;
    let pool = database.another_pool(5).await;
    let one = layer(&pool, "one").database_timeout(Duration::from_secs(20));
    let other = layer(&pool, "other")
        .share_connections(&one)
        .database_timeout(Duration::from_secs(20));
    let routers = [one, other].map(|layer| Router::new().route("/", reads(&pool).layer(layer)));
    assert_all_are_processed(20, &routers).await;
    assert_rows!(database, claims: 40, effects: 40);
}

#[tokio::test]
async fn g9_a_pool_of_one_connection_is_enough() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let router = Router::new().route("/", post(write_effect).layer(layer(&pool, "test")));
    for id in ["a", "b"] {
        let answered = soon(send(&router, github(id, "{}"))).await;
        assert_eq!(answered, answer(200, "processed", "done"));
    }
    assert_rows!(database, claims: 2, effects: 2);
}

/// The logged reason for a delivery that is answered with 503.
async fn reason(router: &Router) -> String {
    let log = logged(async {
        let answered = soon(send(router, github("refused", "{}"))).await;
        assert_eq!(answered, answer(503, "failed", "temporarily unavailable"));
    })
    .await;
    let failed = log.lines().find(|line| line.contains("webhook failed"));
    failed.unwrap().to_owned()
}

#[tokio::test]
async fn g13_a_pool_in_use_is_told_apart_from_a_database_that_does_not_answer() {
    let database = Database::new().await;
    let in_time = |layer: IdempotentWebhook| layer.database_timeout(Duration::from_millis(200));

    // Queries outside of the layer use all connections. The pool's own timeout is longer than the layer's, or shorter.
    let impatient = database.pool.options().clone();
    let impatient = impatient.acquire_timeout(Duration::from_millis(100));
    let impatient = impatient.connect_lazy_with(database.options());
    for pool in [database.pool.clone(), impatient] {
        let router =
            Router::new().route("/", post(write_effect).layer(in_time(layer(&pool, "test"))));
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(pool.acquire().await.unwrap());
        }
        let reason = reason(&router).await;
        assert!(
            reason.contains("all 5 connections of the pool are in use"),
            "{reason}"
        );
        assert!(
            reason.contains("`max_connections` of each layer"),
            "{reason}"
        );
    }

    // The layer itself uses all connections.
    let (mut gate, handler) = gated();
    let limited = layer(&database.pool, "test").max_connections(1);
    let impatient = in_time(layer(&database.pool, "another")).share_connections(&limited);
    let running = Router::new().route("/", post(handler).layer(limited));
    let running = spawn_send(&running, github("running", "{}"));
    gate.reached().await;
    let router = Router::new().route("/", post(write_effect).layer(impatient));
    let busy = reason(&router).await;
    assert!(
        busy.contains("all 1 connections that deliveries may hold"),
        "{busy}"
    );
    gate.open();
    assert_eq!(running.await.unwrap(), answer(200, "processed", ""));

    // The server accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(silent.local_addr().unwrap().port());
    let pool = database
        .pool
        .options()
        .clone()
        .max_connections(1)
        .connect_lazy_with(options);
    let router = Router::new().route("/", post(write_effect).layer(in_time(layer(&pool, "test"))));
    let silence = reason(&router).await;
    assert!(
        silence.contains("Postgres did not answer in time"),
        "{silence}"
    );
    assert_rows!(database, claims: 1, effects: 1);
}

/// The messages that Postgres answers with `ReadyForQuery`. Each of them is one round trip.
type Sent = Arc<Mutex<Vec<String>>>;

/// Relays a connection, and notes its simple queries, and for each `Sync` whether a prepared statement was executed
/// before it.
async fn relay_and_note(client: TcpStream, server: UnixStream, sent: Sent) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { copy(&mut from_server, &mut to_client).await.ok() });
    let mut executes = false;
    // The first message of a connection has no type byte.
    let mut typed = false;
    loop {
        let kind = match typed {
            true => from_client.read_u8().await,
            false => Ok(0),
        };
        let Ok(kind) = kind else { return };
        let Ok(length) = from_client.read_u32().await else {
            return;
        };
        let mut content = vec![0; length as usize - 4];
        from_client.read_exact(&mut content).await.unwrap();
        match kind {
            b'Q' => {
                let query = String::from_utf8_lossy(&content);
                sent.lock()
                    .unwrap()
                    .push(query.trim_end_matches('\0').to_owned());
            }
            b'E' => executes = true,
            b'S' => {
                let what = if executes { "execute" } else { "ping" };
                sent.lock().unwrap().push(what.to_owned());
                executes = false;
            }
            _ => {}
        }
        let mut message = Vec::new();
        message.extend(typed.then_some(kind));
        message.extend(length.to_be_bytes());
        message.extend(content);
        to_server.write_all(&message).await.unwrap();
        typed = true;
    }
}

/// A fresh delivery takes six round trips. The last one is the pool's ping, after the answer to the sender, when the
/// connection returns to the pool.
#[tokio::test]
async fn a_fresh_delivery_is_begin_claim_the_handlers_insert_look_and_commit() {
    let database = Database::new().await;
    let sent = Sent::default();
    let options = database.options_through({
        let sent = sent.clone();
        move |client, server| relay_and_note(client, server, sent.clone())
    });
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options.await);
    let layer = layer(&pool, "test").without_activity();
    let router = Router::new().route("/", post(write_effect).layer(layer));
    for id in ["first", "warm"] {
        sent.lock().unwrap().clear();
        let answered = send(&router, github(id, "{}")).await;
        assert_eq!(answered, answer(200, "processed", "done"));
        let returned = async {
            while pool.num_idle() == 0 {
                tokio::task::yield_now().await;
            }
        };
        soon(returned).await;
    }
    assert_eq!(
        *sent.lock().unwrap(),
        [
            "begin not deferrable; set local enable_seqscan = off",
            "execute",
            "execute",
            "execute",
            "COMMIT",
            "ping",
        ]
    );
    assert_rows!(database, claims: 2, effects: 2);
}

/// The cases: no process listens at the address, the host name is unknown, or the role has no connections left.
#[tokio::test]
async fn g13_each_way_in_which_postgres_cannot_be_reached_has_its_own_words() {
    let database = Database::new().await;
    let role = format!("full_{}", database.name);
    database
        .run(&format!("create role {role} login connection limit 0"))
        .await;
    let refused = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(1);
    let unknown = PgConnectOptions::new_without_pgpass().host("no-such-host.invalid");
    let full = database.options().username(&role);
    for (options, words) in [
        (refused, "nothing listens at 127.0.0.1:1: "),
        (unknown, "failed to lookup address information"),
        (full, "the pools of all processes together must fit"),
    ] {
        let pool = database.pool.options().clone().connect_lazy_with(options);
        let layer = layer(&pool, "test").database_timeout(Duration::from_secs(1));
        let router = Router::new().route("/", post(write_effect).layer(layer));
        let reason = reason(&router).await;
        assert!(reason.contains(words), "{words}: {reason}");
        assert!(!reason.contains("did not answer in time"), "{reason}");
    }
    database.run(&format!("drop role {role}")).await;
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g13_that_postgres_can_be_reached_again_is_one_line() {
    let database = Database::new().await;
    let role = format!("limited_{}", database.name);
    database
        .run(&format!(
            "create role {role} login superuser;
             alter role {role} nosuperuser connection limit 0;
             grant all on schema idempotent_webhook to {role};
             grant all on all tables in schema idempotent_webhook to {role};
             grant all on effects to {role}"
        ))
        .await;
    let options = database.options().username(&role);
    let pool = database.pool.options().clone().connect_lazy_with(options);
    let layer = layer(&pool, "test")
        .database_timeout(Duration::from_secs(1))
        .without_activity();
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let log = logged(async {
        for _ in 0..2 {
            assert_eq!(send(&router, github("a", "{}")).await.status, 503);
        }
        database
            .run(&format!("alter role {role} connection limit -1"))
            .await;
        for outcome in ["processed", "duplicate"] {
            assert_eq!(send(&router, github("a", "{}")).await.outcome, outcome);
        }
    })
    .await;
    assert_eq!(
        log.matches("Postgres can be reached again").count(),
        1,
        "{log}"
    );
    assert_rows!(database, claims: 1, effects: 1);
    pool.close().await;
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}

#[tokio::test]
async fn g13_a_right_that_is_missing_is_told_with_what_gives_it() {
    let database = Database::new().await;
    let role = format!("plain_{}", database.name);
    database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role}"
        ))
        .await;
    let options = database.options().username(&role);
    let pool = database.pool.options().clone().connect_lazy_with(options);
    let router = Router::new().route("/", post(write_effect).layer(layer(&pool, "test")));
    let reason = reason(&router).await;
    assert!(
        reason.contains("permission denied for table")
            && reason.contains("; has `grant` been run again since the last `migrate`?"),
        "{reason}"
    );
    assert!(!reason.contains("at line"), "{reason}");
    pool.close().await;
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
    assert_rows!(database, claims: 0, effects: 0);
}

/// The handler waits for a second connection, but it holds the pool's last connection itself.
#[tokio::test]
async fn g13_a_handler_that_takes_the_last_connection_learns_that_it_holds_one() {
    let database = Database::new().await;
    let options = database.pool.options().clone().max_connections(1);
    for (acquire, words) in [
        (
            100,
            "a handler already holds the connection of its `DedupeTx`",
        ),
        (
            60_000,
            "a handler that takes another one in addition to its `DedupeTx` waits",
        ),
    ] {
        let pool = options
            .clone()
            .acquire_timeout(Duration::from_millis(acquire))
            .connect_lazy_with(database.options());
        let layer = layer(&pool, "test").handler_timeout(Duration::from_secs(1));
        let other = pool.clone();
        let reads = post(async move |_: DedupeTx| -> Result<(), HandlerError> {
            other.execute("select 1").await?;
            Ok(())
        });
        let router = Router::new().route("/", reads.layer(layer));
        let log = logged(async {
            let answered = soon(send(&router, github("a", "{}"))).await;
            assert_eq!(answered.outcome, "failed");
        })
        .await;
        assert!(log.contains(words), "{words}: {log}");
    }
    assert_rows!(database, claims: 0, effects: 0);
}
