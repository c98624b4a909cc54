//! `serialize_by`: one delivery at a time for each object, such as a customer.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, LateClaim, Outcome, Recovery,
    Source, TenantSecrets, presets,
};
use serde_json::{Value, json};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, UnixStream};

use crate::support::{
    Database, Failing, NO_ADVISORY_LOCK, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, TestApp, answer,
    assert_kept, assert_rows, failing_behind_gate, gated, github, github_delivery, insert_effect,
    keep, keep_all, lose_connections, recover, recover_all, secret, send, soon, spawn_send,
    until_all_wait, write_effect,
};

const MINUTE: Duration = Duration::from_secs(60);

fn by_ref(layer: IdempotentWebhook) -> IdempotentWebhook {
    layer
        .serialize_by(Source::json("$.ref".parse().unwrap()))
        .database_timeout(Duration::from_secs(20))
        .in_flight_timeout(Duration::from_secs(20))
}

fn push(id: &str, object: &str) -> Request<Body> {
    let body = json!({ "ref": object, "id": id }).to_string();
    github_delivery().id(id).body(body).request()
}

#[tokio::test]
async fn o_deliveries_of_one_object_wait_for_each_other_in_a_process_without_a_connection() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(by_ref, handler).await;
    let first = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let same: Vec<_> = (0..10)
        .map(|n| spawn_send(&app.router, push(&n.to_string(), "main")))
        .collect();
    // A delivery of another object does not wait, and neither does a delivery without an object.
    let other = spawn_send(&app.router, push("b", "side"));
    gate.reached().await;
    let none = spawn_send(&app.router, github("c", "{}"));
    gate.reached().await;
    assert_eq!(app.runs(), 3);
    assert_eq!(app.database.in_transaction().await, 3);
    for _ in 0..13 {
        gate.open();
    }
    for sent in [first, other, none].into_iter().chain(same) {
        assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
    }
    assert_rows!(app.database, claims: 13, effects: 13);
}

/// A delivery waits for another delivery of its object. If its attempt ended when the sender hangs up, the delivery
/// would be lost.
#[tokio::test]
async fn g8_a_sender_that_hangs_up_during_the_wait_for_an_object_loses_nothing() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(by_ref, handler).await;
    let first = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let second = spawn_send(&app.router, push("b", "main"));
    until_all_wait().await;
    second.abort();
    assert!(second.await.is_err_and(|error| error.is_cancelled()));
    gate.open();
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    let both = "2 = (select count(*) from effects)";
    app.database.until(both).await;
    app.settled().await;
    assert_eq!(app.runs(), 2);
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// The only connection for deliveries is in use. The layer keeps the failed delivery on another connection.
#[tokio::test]
async fn r1_a_delivery_that_finds_no_place_for_its_claim_is_kept() {
    let (mut gate, handler) = gated();
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        layer
            .database_timeout(Duration::from_millis(500))
            .max_connections(1)
            .keep(keep(recovery))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let first = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let second = app.send(push("b", "side")).await;
    assert_eq!((second.status, &*second.outcome), (503, "kept"));
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    gate.open();
    recover_all(&app).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn o_deliveries_of_one_object_wait_for_each_other_over_processes() {
    // The first delivery fails, or it succeeds.
    for fails in [false, true] {
        let app = TestApp::github_with(by_ref, write_effect).await;
        let (mut gate, there) = if fails {
            let (gate, handler) = failing_behind_gate();
            (gate, app.elsewhere_with(by_ref, handler).await)
        } else {
            let (gate, handler) = gated();
            (gate, app.elsewhere_with(by_ref, handler).await)
        };
        let first = spawn_send(&there, push("a", "main"));
        gate.reached().await;
        let second = spawn_send(&app.router, push("b", "main"));
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        assert_eq!(app.runs(), 1);
        // The waiting delivery holds no lock that anything else needs.
        assert_eq!(
            app.send(push("c", "side")).await,
            answer(200, "processed", "done")
        );
        gate.open();
        assert_eq!(first.await.unwrap().status, if fails { 502 } else { 200 });
        assert_eq!(second.await.unwrap(), answer(200, "processed", "done"));
        let done = if fails { 2 } else { 3 };
        assert_rows!(app.database, claims: done, effects: done);
    }
}

#[tokio::test]
async fn o_the_wait_is_bounded_in_a_process_and_over_processes() {
    let short = |layer| by_ref(layer).in_flight_timeout(Duration::from_millis(50));
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(short, handler).await;
    let elsewhere = app.elsewhere_with(short, write_effect).await;
    let first = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let in_flight = answer(503, "in-flight", "in flight, retry later");
    assert_eq!(app.send(push("b", "main")).await, in_flight);
    assert_eq!(send(&elsewhere, push("b", "main")).await, in_flight);
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(
        send(&elsewhere, push("b", "main")).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// Postgres may grant the lock to the session just when the wait times out, so the connection is closed.
#[tokio::test]
async fn o_a_wait_in_vain_leaves_its_connection_to_nobody() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(by_ref, handler).await;
    let pool = app.database.another_pool(1).await;
    let session = async || -> i32 {
        let pid = sqlx::query_scalar("select pg_backend_pid()");
        pid.fetch_one(&pool).await.unwrap()
    };
    let before = session().await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let layer = by_ref(layer).in_flight_timeout(Duration::from_millis(50));
    let elsewhere = Router::new().route("/", post(write_effect).layer(layer));
    let first = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let in_flight = send(&elsewhere, push("b", "main")).await;
    assert_eq!(in_flight.outcome, "in-flight");
    assert_ne!(session().await, before);
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn o_a_wait_that_loses_its_connection_goes_on_on_another_one() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(by_ref, handler).await;
    let elsewhere = app.elsewhere_with(by_ref, write_effect).await;
    let first = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let second = spawn_send(&elsewhere, push("b", "main"));
    lose_connections(&app.database, 1).await;
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(second.await.unwrap(), answer(200, "processed", "done"));
    app.database.until(NO_ADVISORY_LOCK).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// If the objects of two deliveries cannot be read, they may be the same object, so the deliveries wait for each other.
#[tokio::test]
async fn o_objects_that_cannot_be_read_are_one() {
    let short = |layer| by_ref(layer).in_flight_timeout(Duration::from_millis(50));
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(short, handler).await;
    let unreadable = |id, body: &str| github_delivery().id(id).body(body).request();
    let first = spawn_send(&app.router, unreadable("a", r#"{"ref":[1]}"#));
    gate.reached().await;
    for body in [r#"{"ref":1.5}"#, r#"{"ref":1,"ref":2}"#, "not JSON"] {
        let sent = app.send(unreadable("b", body)).await;
        assert_eq!((sent.status, &*sent.outcome), (503, "in-flight"), "{body}");
    }
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A transaction that has waited for a lock may have a snapshot from before the wait. It would not see the commit that
/// it waited for, so the layer starts a new transaction.
#[tokio::test]
async fn o_a_handler_sees_what_it_has_waited_for_at_any_isolation_level() {
    async fn count(mut tx: DedupeTx, delivery: Delivery) -> Result<String, HandlerError> {
        let known: i64 = sqlx::query_scalar("select count(*) from effects")
            .fetch_one(&mut *tx)
            .await?;
        insert_effect(&mut tx, &delivery).await?;
        Ok(known.to_string())
    }
    for level in ["read committed", "repeatable read", "serializable"] {
        let (mut gate, handler) = gated();
        let app = TestApp::github_with(by_ref, handler).await;
        let options = app.database.pool.connect_options().as_ref().clone();
        let options = options.options([("default_transaction_isolation", level)]);
        let pool = PgPoolOptions::new().connect_with(options).await.unwrap();
        let layer = by_ref(IdempotentWebhook::new(
            pool,
            "test",
            presets::github(secret()),
        ));
        let there = Router::new().route("/", post(count).layer(layer));
        // The first delivery of a process registers the process.
        assert_eq!(
            send(&there, push("0", "side")).await,
            answer(200, "processed", "0")
        );
        let first = spawn_send(&app.router, push("a", "main"));
        gate.reached().await;
        let second = spawn_send(&there, push("b", "main"));
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        gate.open();
        assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
        assert_eq!(
            second.await.unwrap(),
            answer(200, "processed", "2"),
            "{level}"
        );
        assert_rows!(app.database, claims: 3, effects: 3);
    }
}

/// Each delivery inserts a number that is one higher than the highest committed number.
#[tokio::test(flavor = "multi_thread")]
async fn o_the_snapshot_of_a_handler_is_newer_than_the_lock_of_its_object() {
    const DELIVERIES: usize = 400;
    let next = async |mut tx: DedupeTx, delivery: Delivery| {
        let last: i64 = sqlx::query_scalar("select coalesce(max(n), 0) from numbers")
            .fetch_one(&mut *tx)
            .await?;
        sqlx::query("insert into numbers values ($1)")
            .bind(last + 1)
            .execute(&mut *tx)
            .await?;
        insert_effect(&mut tx, &delivery).await?;
        Ok::<_, HandlerError>(())
    };
    for level in ["repeatable read", "serializable", "read committed"] {
        let app = TestApp::github_with(by_ref, next).await;
        let name = &app.database.name;
        app.database
            .run(&format!(
                "alter database {name} set default_transaction_isolation = '{level}';
                 create table numbers (n bigint)"
            ))
            .await;
        let mut routers = Vec::new();
        for _ in 0..2 {
            // Without a statement cache, each statement is parsed again. Postgres takes the snapshot at the parse, one
            // round trip before the statement waits for the lock.
            let options = app.database.options().statement_cache_capacity(0);
            let pool = PgPoolOptions::new().connect_with(options).await.unwrap();
            // The last delivery waits for all others.
            let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
            let layer = by_ref(layer)
                .database_timeout(MINUTE)
                .in_flight_timeout(MINUTE);
            routers.push(Router::new().route("/", post(next).layer(layer)));
        }
        let sent: Vec<_> = (0..DELIVERIES)
            .map(|n| spawn_send(&routers[n % 2], push(&n.to_string(), "main")))
            .collect();
        for sent in sent {
            assert_eq!(sent.await.unwrap(), answer(200, "processed", ""), "{level}");
        }
        let numbers = "select count(distinct n) from numbers where n between 1 and 400";
        assert_eq!(app.database.count(numbers).await, 400, "{level}");
        assert_rows!(app.database, claims: 400, effects: 400);
        app.database.until(NO_ADVISORY_LOCK).await;
    }
}

/// Options for connections whose client host disappears once it has sent `last`. Later messages do not arrive, and
/// Postgres does not notice.
async fn lost_after(database: &Database, last: &'static str) -> PgConnectOptions {
    let options = database.options();
    let socket = options.get_socket().unwrap().join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut from_host, mut to_host) = listener.accept().await.unwrap().0.into_split();
            let postgres = UnixStream::connect(&socket).await.unwrap();
            let (mut from_postgres, mut to_postgres) = postgres.into_split();
            tokio::spawn(async move { copy(&mut from_postgres, &mut to_host).await.ok() });
            tokio::spawn(async move {
                let mut message = vec![0; 65536];
                while let Ok(read @ 1..) = from_host.read(&mut message).await {
                    to_postgres.write_all(&message[..read]).await.unwrap();
                    let sent = String::from_utf8_lossy(&message[..read]);
                    if sent.contains(last) {
                        std::future::pending::<()>().await;
                    }
                }
            });
        }
    });
    PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(address.port())
        .ssl_mode(PgSslMode::Disable)
        .username("postgres")
        .database(&database.name)
}

#[tokio::test(flavor = "multi_thread")]
async fn o_a_host_that_is_lost_after_its_wait_does_not_hold_the_object() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(by_ref, handler).await;
    let lost = lost_after(&app.database, "rollback and chain").await;
    let pool = PgPoolOptions::new().connect_with(lost).await.unwrap();
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
    let layer = by_ref(layer)
        .in_flight_timeout(Duration::from_secs(2))
        .database_timeout(Duration::from_millis(200))
        .handler_timeout(Duration::from_millis(200));
    let lost = Router::new().route("/", post(write_effect).layer(layer));
    let busy = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    let waiting = spawn_send(&lost, push("b", "main"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(busy.await.unwrap(), answer(200, "processed", ""));
    let failed = waiting.await.unwrap();
    assert_eq!((failed.status, &*failed.outcome), (503, "failed"));
    assert_rows!(app.database, claims: 1, effects: 1);
    let elsewhere = app.elsewhere_with(by_ref, write_effect).await;
    assert_eq!(
        soon(send(&elsewhere, push("b", "main"))).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// The delivery was processed before, so it does not wait for its object.
#[tokio::test]
async fn o_a_duplicate_is_one_although_its_object_is_busy() {
    let short = |layer| by_ref(layer).in_flight_timeout(Duration::from_millis(50));
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(short, handler).await;
    let elsewhere = app.elsewhere_with(short, write_effect).await;
    assert_eq!(
        send(&elsewhere, push("a", "main")).await,
        answer(200, "processed", "done")
    );
    let busy = spawn_send(&app.router, push("b", "main"));
    gate.reached().await;
    for router in [&app.router, &elsewhere] {
        let again = send(router, push("a", "main")).await;
        assert_eq!(again, answer(200, "duplicate", ""));
    }
    gate.open();
    assert_eq!(busy.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// At these isolation levels, a delivery that has waited must start a new transaction. If it gave up the lock for that,
/// the waiting deliveries would pass the lock around without progress.
#[tokio::test(flavor = "multi_thread")]
async fn o_many_processes_at_a_higher_isolation_level_do_not_hold_each_other_up() {
    for level in ["repeatable read", "serializable"] {
        let app = TestApp::github_with(by_ref, write_effect).await;
        let name = &app.database.name;
        app.database
            .run(&format!(
                "alter database {name} set default_transaction_isolation = '{level}'"
            ))
            .await;
        let handler = async |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok::<_, HandlerError>(())
        };
        let mut routers = Vec::new();
        for _ in 0..8 {
            routers.push(app.elsewhere_with(by_ref, handler).await);
        }
        let sent: Vec<_> = (0..80)
            .map(|n| spawn_send(&routers[n % 8], push(&n.to_string(), "main")))
            .collect();
        for sent in sent {
            assert_eq!(sent.await.unwrap(), answer(200, "processed", ""), "{level}");
        }
        app.database.until(NO_ADVISORY_LOCK).await;
        assert_rows!(app.database, claims: 80, effects: 80);
    }
}

/// If the cancelled wait went on in Postgres, the session would get the lock of the object, and nothing would release
/// it.
#[tokio::test]
async fn o_a_wait_that_is_cancelled_keeps_no_object() {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(by_ref, handler).await;
    let cancelled = async |claim: LateClaim| {
        let begun = tokio::time::timeout(Duration::from_millis(100), claim.begin()).await;
        assert!(begun.is_err());
        StatusCode::CONFLICT
    };
    let late = |layer: IdempotentWebhook| by_ref(layer).late_claim();
    let waiting = app.elsewhere_with(late, cancelled).await;
    let busy = spawn_send(&app.router, push("a", "main"));
    gate.reached().await;
    assert_eq!(send(&waiting, push("b", "main")).await.status, 409);
    gate.open();
    assert_eq!(busy.await.unwrap(), answer(200, "processed", ""));
    let elsewhere = app.elsewhere_with(by_ref, write_effect).await;
    assert_eq!(
        send(&elsewhere, push("c", "main")).await,
        answer(200, "processed", "done")
    );
    app.database.until(NO_ADVISORY_LOCK).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// While an attempt in the background waits for its object, it occupies a slot that deliveries of other objects could
/// use. It therefore waits only for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn o_an_attempt_in_the_background_waits_for_a_moment_only() {
    for is_elsewhere in [false, true] {
        waits_for_a_moment_only(is_elsewhere).await;
    }
}

async fn waits_for_a_moment_only(is_elsewhere: bool) {
    let (mut gate, handler) = gated();
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        by_ref(layer)
            .in_flight_timeout(Duration::from_secs(60))
            .keep(keep(recovery))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler.clone()).await;
    let busy = match is_elsewhere {
        true => app.elsewhere_with(by_ref, handler).await,
        false => app.router.clone(),
    };
    let busy = spawn_send(&busy, push("a", "main"));
    gate.reached().await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('test', 'b', 'due', 1, now());
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('test', 'b', 1, 'POST', '/', '', '{\"ref\":\"main\"}')",
        )
        .await;
    let attempts = soon(app.recovery.run_due(&app.router)).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].outcome, Some(Outcome::InFlight));
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    gate.open();
    assert_eq!(busy.await.unwrap(), answer(200, "processed", ""));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A kept request has only some headers. The header that names the object must be one of them.
#[tokio::test(flavor = "multi_thread")]
async fn o_an_object_in_a_header_is_kept() {
    let header = || -> axum::http::HeaderName { "x-object".parse().unwrap() };
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        layer
            .keep(keep(recovery))
            .serialize_by(Source::header(header()))
    };
    let app = TestApp::recovered(presets::github(secret()), set, Failing::times(1).handler()).await;
    let order = github_delivery().id("a").header(header(), "o-1");
    assert_eq!(app.send(order.request()).await.outcome, "kept");
    app.database
        .until(
            "(select convert_from(headers, 'UTF8') like '%x-object: o-1%'
              from idempotent_webhook.kept_requests)",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
#[should_panic(expected = "is not in a request that is kept")]
async fn o_an_object_of_a_signature_is_refused() {
    let pool = sqlx::PgPool::connect_lazy("postgres://localhost/none").unwrap();
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
    let _ = layer.serialize_by(Source::signed_time().or(Source::json("$.ref".parse().unwrap())));
}

/// Two accounts may use the same names for their objects.
#[tokio::test]
async fn o_tenants_with_ids_of_their_own_have_objects_of_their_own() {
    for separate in [true, false] {
        let secrets = TenantSecrets::new(
            |head| head.uri.query().map(str::to_owned),
            async |_| Ok(Some(secret())),
        );
        let secrets = match separate {
            true => secrets.separate_ids(),
            false => secrets,
        };
        let short = |layer| by_ref(layer).in_flight_timeout(Duration::from_millis(50));
        let (mut gate, handler) = gated();
        let app = TestApp::with(presets::github(secrets), short, handler).await;
        let push = |id: &str, tenant: &str| {
            let delivery = github_delivery().id(id).uri(&format!("/?{tenant}"));
            delivery.body(r#"{"ref":"main"}"#).request()
        };
        let acme = spawn_send(&app.router, push("a", "acme"));
        gate.reached().await;
        let globex = spawn_send(&app.router, push("b", "globex"));
        if separate {
            gate.reached().await;
            gate.open();
            gate.open();
        }
        let globex = globex.await.unwrap();
        assert_eq!(
            globex.outcome,
            if separate { "processed" } else { "in-flight" }
        );
        if !separate {
            gate.open();
        }
        assert_eq!(acme.await.unwrap(), answer(200, "processed", ""));
        let done = if separate { 2 } else { 1 };
        assert_rows!(app.database, claims: done, effects: done);
    }
}

/// The objects whose deliveries are being handled now. No object may be in it twice.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<HashSet<String>>>);

impl Running {
    async fn handle(
        self,
        mut tx: DedupeTx,
        delivery: Delivery,
        Json(body): Json<Value>,
    ) -> Result<(), HandlerError> {
        let object = body["ref"].to_string();
        if !self.0.lock().unwrap().insert(object.clone()) {
            return Err(HandlerError::new("two of one object overlap").dead());
        }
        insert_effect(&mut tx, &delivery).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.0.lock().unwrap().remove(&object);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn o_of_a_thousand_deliveries_to_two_processes_no_two_of_one_object_overlap() {
    const DELIVERIES: usize = 1000;
    let running = Running::default();
    let handler = {
        let running = running.clone();
        move |tx: DedupeTx, delivery: Delivery, body: Json<Value>| {
            running.clone().handle(tx, delivery, body)
        }
    };
    // All deliveries are sent at once. The last delivery of an object waits for all earlier deliveries of the object,
    // and for the pool.
    let set = |layer| {
        let patient = Duration::from_secs(120);
        by_ref(layer)
            .in_flight_timeout(patient)
            .database_timeout(patient)
    };
    let app = TestApp::github_with(set, handler.clone()).await;
    let elsewhere = app.elsewhere_with(set, handler).await;
    let send_all = |half: usize| {
        let router = if half == 0 { &app.router } else { &elsewhere };
        let requests = (0..DELIVERIES).filter(move |n| n % 2 == half);
        let sent: Vec<_> = requests
            .map(|n| {
                let object = format!("object {}", n / 2 % 20);
                spawn_send(router, push(&n.to_string(), &object))
            })
            .collect();
        sent
    };
    let (here, there) = (send_all(0), send_all(1));
    for sent in here.into_iter().chain(there) {
        assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
    }
    assert_rows!(app.database, claims: 1000, effects: 1000);
}

/// A delivery whose wait times out is kept, or due again.
#[tokio::test(flavor = "multi_thread")]
async fn o_of_many_of_one_object_none_is_lost() {
    none_is_lost(keep, "kept").await;
    none_is_lost(keep_all, "in-flight").await;
}

async fn none_is_lost(way: fn(&Recovery) -> Keep, outcome: &str) {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok::<_, HandlerError>(())
    };
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        by_ref(layer)
            .in_flight_timeout(Duration::from_millis(200))
            .keep(way(recovery))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let sent: Vec<_> = (0..64)
        .map(|n| spawn_send(&app.router, push(&n.to_string(), "main")))
        .collect();
    let mut over = 0;
    for sent in sent {
        let sent = sent.await.unwrap();
        match (sent.status, &*sent.outcome) {
            (200, "processed") => {}
            (503, told) if told == outcome => over += 1,
            _ => panic!("{sent:?}"),
        }
    }
    assert!(over > 0, "no delivery has reached its time limit");
    app.database
        .run("update idempotent_webhook.kept_deliveries set next_attempt_at = now()")
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 64, effects: 64);
}
