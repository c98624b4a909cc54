//! Attempts that did not finish. A process takes a delivery before it attempts it. The delivery is
//! free again as soon as the process is known to be dead: no lease has to expire.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::recovery::{Discarded, Filter, Retried};
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, presets,
};
use sqlx::{Executor, PgPool, Row};
use tower_http::timeout::TimeoutLayer;

use crate::late_claim::gated_late;
use crate::support::{
    Database, Failing, NOTHING_KEPT, ONE_DEAD, ONE_WAITS_FOR_A_LOCK, Process, SOON, TestApp,
    answer, assert_rows, endpoint, failing_behind_gate, gate, gated, github, held_back,
    insert_effect, keep, keep_accepted, keep_all, keeping_by, longer_than_silence, recover,
    recovery, secret, send, soon, spawn_send, write_effect,
};

/// Inserts a delivery that a process has taken. `null` means no process, and `0` means a process
/// that is gone.
async fn insert_taken(database: &Database, id: &str, taken_by: &str, unfinished: i32) {
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, retries, takes, taken_by, unfinished,
                 next_attempt_at)
             values ('test', '{id}', 'due', 2, 1, 1, {taken_by}, {unfinished}, now());
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('test', '{id}', 1, 'POST', '/', '', '{{}}')"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k4_the_deliveries_of_a_killed_process_run_again_whatever_a_handler_may_take() {
    let database = Database::new().await;
    let recovery = recovery(&database.pool);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .handler_timeout(Duration::MAX)
        .keep(Keep::failed(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    // The attempt is about to start, in a process that has just been killed.
    database
        .run("insert into idempotent_webhook.processes values (1, 1)")
        .await;
    insert_taken(&database, "a", "1", 0).await;
    let recovery = recovery.spawn(router);
    // The delivery is taken over within ten seconds.
    soon(database.until(NOTHING_KEPT)).await;
    recovery.stop().await;
    assert_rows!(database, claims: 1, effects: 1);
}

/// Simulates a body that kills each process that reads it.
#[tokio::test(flavor = "multi_thread")]
async fn r6_a_request_that_no_process_survives_to_read_uses_up_its_attempts() {
    let database = Database::new().await;
    let role = format!("reading_{}", database.name);
    database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role};
             grant select, insert, update, delete on all tables in schema idempotent_webhook
                 to {role};
             revoke select on idempotent_webhook.kept_requests from {role};
             grant select (endpoint, tenant, delivery_id, format, signed_at)
                 on idempotent_webhook.kept_requests to {role}"
        ))
        .await;
    let pool = PgPool::connect_lazy_with(database.options().username(&role));
    insert_taken(&database, "a", "null", 0).await;
    for is_over in ["attempts = 3", "attempts = 4", "last_failed_at is not null"] {
        let process = Process::new(pool.clone(), keep, write_effect);
        let recovery = process.recover();
        let is_over =
            format!("exists (select from idempotent_webhook.kept_deliveries where {is_over})");
        soon(database.until(&is_over)).await;
        recovery.stop().await;
    }
    pool.close().await;
    // Two attempts were counted before, and the two unfinished attempts are counted as well.
    let failed = "select count(*) from idempotent_webhook.kept_deliveries
                  where attempts = 4 and reason like 'its attempts did not end:%'";
    assert_eq!(database.count(failed).await, 1);
    assert_rows!(database, claims: 0, effects: 0);
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}

/// The attempt has not claimed the delivery yet, so it holds no lock. Only the heartbeats of its
/// process keep other processes away from the delivery.
#[tokio::test(flavor = "multi_thread")]
async fn k4_an_attempt_that_runs_is_not_taken_over() {
    let (mut gate, way) = gate();
    let set =
        |layer: IdempotentWebhook, recovery: &Recovery| layer.late_claim().keep(keep_all(recovery));
    let app = TestApp::recovered(presets::github(secret()), set, gated_late(way)).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let other = Process::new(app.database.another_pool(5).await, keep, write_effect);
    let watching = other.recover();
    tokio::time::sleep(longer_than_silence()).await;
    watching.stop().await;
    for (recovery, router) in [
        (&app.recovery, &app.router),
        (&other.recovery, &other.router),
    ] {
        let results = recovery.run_due(router).await.unwrap();
        assert!(results.is_empty(), "{results:?}");
    }
    assert_eq!(app.database.kept().await.attempts, 1);
    gate.open();
    assert_eq!(sent.await.unwrap(), answer(200, "processed", "done"));
    assert_eq!(app.runs(), 1);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// While the attempt waits for its claim, another process takes the delivery, or a failed request
/// of the provider makes it dead.
#[tokio::test(flavor = "multi_thread")]
async fn k4_an_attempt_that_waits_for_its_claim_runs_only_what_it_has_taken() {
    for change in ["takes = takes + 1", "state = 'dead'"] {
        let app = TestApp::keeping(|keep| keep, write_effect).await;
        insert_taken(&app.database, "a", "null", 0).await;
        let mut claim = app.database.another_pool(1).await.begin().await.unwrap();
        sqlx::query(
            "select pg_advisory_xact_lock(
                hashtextextended('a', hashtextextended('', hashtextextended('test', 0)))
            )",
        )
        .execute(&mut *claim)
        .await
        .unwrap();
        let recovery = recover(&app);
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        app.database
            .run(&format!(
                "update idempotent_webhook.kept_deliveries set {change}"
            ))
            .await;
        claim.rollback().await.unwrap();
        recovery.stop().await;
        assert_eq!(app.runs(), 0, "{change}");
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// Before the attempt writes its failure, another process has taken the delivery, and writes the
/// result of its own attempt.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_failure_is_written_only_by_the_attempt_that_was_the_last_to_take_it() {
    let (mut gate, handler) = failing_behind_gate();
    let app = TestApp::keeping_all(|keep| keep, handler).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    // The attempt loses its connection, and with it the lock on its row.
    app.database
        .run(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction';
             update idempotent_webhook.kept_deliveries set takes = takes + 1",
        )
        .await;
    gate.open();
    assert_eq!(sent.await.unwrap(), answer(502, "kept", ""));
    app.database
        .until(
            "exists (
                select from idempotent_webhook.kept_deliveries
                where taken_by is not null and reason is null and history = '[]'
            )",
        )
        .await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// A frozen process keeps its connection open, so Postgres ends the idle transaction by a timeout.
#[tokio::test(flavor = "multi_thread")]
async fn k4_postgres_ends_the_claim_of_a_frozen_process_which_has_no_effect_afterwards() {
    let database = Database::new().await;
    let (frozen, is_frozen) = mpsc::channel();
    let (thaw, thawed) = mpsc::channel::<()>();
    let thawed = Arc::new(std::sync::Mutex::new(thawed));
    let handler = move |mut tx: DedupeTx, delivery: Delivery| {
        let (frozen, thawed) = (frozen.clone(), thawed.clone());
        async move {
            insert_effect(&mut tx, &delivery).await.unwrap();
            frozen.send(()).unwrap();
            // This freezes the thread of the process's runtime, not only the task.
            thawed.lock().unwrap().recv().unwrap();
            StatusCode::OK
        }
    };
    let layer = |pool, recovery: &Recovery| {
        IdempotentWebhook::new(pool, "test", presets::github(secret()))
            .handler_timeout(Duration::from_millis(500))
            .in_flight_timeout(Duration::from_millis(100))
            .database_timeout(Duration::from_millis(300))
            .keep(Keep::all(recovery).retry_delays([SOON]))
    };
    let options = database.options();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let pool = sqlx::PgPool::connect_with(options).await.unwrap();
            let layer = layer(pool.clone(), &Recovery::elsewhere(pool));
            let router: Router = Router::new().route("/", post(handler).layer(layer));
            send(&router, github("a", "{}")).await
        })
    });
    tokio::task::spawn_blocking(move || is_frozen.recv().unwrap())
        .await
        .unwrap();

    let next = recovery(&database.pool);
    let layer = layer(database.pool.clone(), &next);
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let next = next.spawn(router);
    soon(database.until(NOTHING_KEPT)).await;
    next.stop().await;
    assert_rows!(database, claims: 1, effects: 1);

    thaw.send(()).unwrap();
    let late = tokio::task::spawn_blocking(move || process.join().unwrap())
        .await
        .unwrap();
    assert_eq!((late.status, &*late.outcome), (200, "duplicate"));
    database.until(NOTHING_KEPT).await;
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn k4_a_lower_limit_of_the_pool_stays() {
    let database = Database::new().await;
    let limit_of = async |limit: &str| {
        let options = database
            .options()
            .options([("idle_in_transaction_session_timeout", limit)]);
        let pool = sqlx::PgPool::connect_lazy_with(options);
        let (tell, told) = tokio::sync::oneshot::channel();
        let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
        let handler = move |mut tx: DedupeTx| {
            let tell = tell.clone();
            async move {
                let limit: String = sqlx::query_scalar("show idle_in_transaction_session_timeout")
                    .fetch_one(&mut *tx)
                    .await
                    .unwrap();
                tell.lock().unwrap().take().unwrap().send(limit).unwrap();
            }
        };
        let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
            .in_flight_timeout(Duration::from_secs(6));
        let router: Router = Router::new().route("/", post(handler).layer(layer));
        send(&router, github(limit, "{}")).await;
        told.await.unwrap()
    };
    // The limit of one minute is the sum of 30 s for the handler, 6 s of waiting, and eight steps
    // of 3 s.
    assert_eq!(limit_of("0").await, "1min");
    assert_eq!(limit_of("45s").await, "45s");
    assert_eq!(limit_of("2h").await, "1min");
}

/// Both deliveries are unfinished, `twice` for the second time: another delivery kept killing their
/// processes.
#[tokio::test]
async fn k4_after_a_second_attempt_that_did_not_end_the_delay_of_the_schedule_follows() {
    let hour = Duration::from_secs(3600);
    let app = TestApp::keeping(|keep| keep.retry_delays([hour; 3]), write_effect).await;
    insert_taken(&app.database, "once", "0", 0).await;
    insert_taken(&app.database, "twice", "0", 1).await;
    let results = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(results.len(), 2);
    assert_rows!(app.database, claims: 1, effects: 1);
    let kept = app.database.kept().await;
    assert_eq!((&*kept.state, kept.attempts, kept.retries), ("due", 2, 1));
    app.database
        .until(
            "exists (
                select from idempotent_webhook.kept_deliveries
                where next_attempt_at > now() + interval '40 minutes' and taken_by is null
                    and reason like 'its attempts did not end%'
            )",
        )
        .await;
    assert_eq!(app.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn k4_an_operator_retries_what_a_dead_process_holds() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    insert_taken(&app.database, "a", "0", 1).await;
    let retried = endpoint(&app).retry("a").await.unwrap();
    assert_eq!(retried, Retried::Due);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Two endpoints with `Keep::accepted` and slow handlers, which could use up the pool.
#[tokio::test(flavor = "multi_thread")]
async fn k4a_background_work_leaves_connections_for_requests() {
    let database = Database::new().await;
    let pool = database.another_pool(10).await;
    let recovery = Recovery::new(pool.clone()).concurrency(100);
    let (_gate, way) = gate();
    let handler = move |mut tx: DedupeTx, delivery: Delivery| {
        let way = way.clone();
        async move {
            insert_effect(&mut tx, &delivery).await.unwrap();
            way.pass().await;
        }
    };
    let route = |endpoint: &str| {
        let github = presets::github(secret());
        let layer = IdempotentWebhook::new(pool.clone(), endpoint.to_owned(), github)
            .keep(Keep::accepted(&recovery));
        post(handler.clone()).layer(layer)
    };
    let router: Router = Router::new()
        .route("/", route("one"))
        .route("/other", route("other"));
    let task = recovery.clone().spawn(router.clone());
    for n in 0..30 {
        for path in ["/", "/other"] {
            let mut request = github(&n.to_string(), "{}");
            *request.uri_mut() = path.parse().unwrap();
            assert_eq!(
                soon(send(&router, request)).await,
                answer(200, "accepted", "")
            );
        }
    }
    assert!(database.writing().await <= 5);
    assert_rows!(database, claims: 0, effects: 0);
    drop(task);
}

#[tokio::test(flavor = "multi_thread")]
async fn k4a_a_slot_is_held_until_the_work_has_ended_whatever_a_middleware_answers() {
    let running = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let handler = {
        let running = running.clone();
        move |mut tx: DedupeTx, delivery: Delivery| {
            let running = running.clone();
            async move {
                let now = running.0.fetch_add(1, Ordering::SeqCst) + 1;
                running.1.fetch_max(now, Ordering::SeqCst);
                insert_effect(&mut tx, &delivery).await.unwrap();
                tokio::time::sleep(Duration::from_millis(200)).await;
                running.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    for n in 0..6 {
        insert_taken(&app.database, &n.to_string(), "null", 0).await;
    }
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(10));
    let router = app.router.clone().layer(timeout);
    let task = app.recovery.clone().spawn(router);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_eq!(running.1.load(Ordering::SeqCst), 2);
    assert_rows!(app.database, claims: 6, effects: 6);
}

/// A handler may answer 404 because it does not find its row, for example. This is still an
/// attempt.
#[tokio::test(flavor = "multi_thread")]
async fn k4b_an_answer_of_the_handler_is_an_attempt_whatever_it_is() {
    for status in [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED] {
        let app = TestApp::keeping(|keep| keep, status).await;
        let first = app.send(github("a", "{}")).await;
        assert_eq!(first, answer(status.as_u16(), "kept", ""));
        let recovery = recover(&app);
        app.database.until(ONE_DEAD).await;
        recovery.stop().await;
        assert_eq!(app.runs(), 4);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_an_endpoint_with_slow_handlers_does_not_keep_a_fast_one_waiting() {
    let database = Database::new().await;
    let recovery = recovery(&database.pool);
    let (_gate, way) = gate();
    let slow = move |_: DedupeTx| {
        let way = way.clone();
        async move { way.pass().await }
    };
    let layer = |endpoint: &str| {
        let github = presets::github(secret());
        IdempotentWebhook::new(database.pool.clone(), endpoint.to_owned(), github)
            .keep(Keep::failed(&recovery))
    };
    let router: Router = Router::new()
        .route("/", post(write_effect).layer(layer("test")))
        .route("/slow", post(slow).layer(layer("slow")));
    for n in 0..20 {
        insert_taken(&database, &n.to_string(), "null", 0).await;
    }
    database
        .run(
            "update idempotent_webhook.kept_deliveries set next_attempt_at = now();
             insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select 'slow', n::text, 'due', 1, now() - interval '1 hour'
             from generate_series(1, 20) as n;
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'slow', n::text, 1, 'POST', '/slow', '', '{}' from generate_series(1, 20) as n",
        )
        .await;
    let task = recovery.clone().spawn(router);
    soon(database.until("(select count(*) = 20 from effects)")).await;
    drop(task);
}

/// The kept row is deleted in the transaction that makes the claim. If the row were deleted later,
/// it could be the row of a copy that came in between.
#[tokio::test(flavor = "multi_thread")]
async fn r5_what_is_kept_ends_with_the_claim_and_not_later() {
    let app = keeping_by(keep_accepted, Failing::times(0).handler()).await;
    let task = recover(&app);
    for round in 0..20 {
        let id = round.to_string();
        assert_eq!(app.send(github(&id, "{}")).await.outcome, "accepted");
        app.database
            .until(&format!(
                "exists (
                    select from idempotent_webhook.deliveries where delivery_id = '{id}'
                )"
            ))
            .await;
        // At no moment did the claim exist together with the row.
        let listed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
        assert!(listed.is_empty(), "{listed:?}");
        app.database.until(NOTHING_KEPT).await;
    }
    task.stop().await;
    assert_rows!(app.database, claims: 20, effects: 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_discard_waits_for_the_attempt_and_is_true() {
    let (mut gate, handler) = gated();
    let app = TestApp::keeping_all(|keep| keep, handler).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let discard = {
        let endpoint = endpoint(&app);
        tokio::spawn(async move { endpoint.discard("a").await })
    };
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(sent.await.unwrap().outcome, "processed");
    assert_eq!(discard.await.unwrap().unwrap(), Discarded::Processed);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Two attempts at one delivery end it as dead: the provider's attempt, and a recovery attempt that
/// waited for its claim.
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_delivery_that_two_attempts_end_dies_once() {
    let (mut gate, way) = gate();
    let deaths = Arc::new(AtomicU32::new(0));
    let handler = move |_: DedupeTx, delivery: Delivery| {
        let way = way.clone();
        async move {
            if delivery.attempt() == 1 {
                way.pass().await;
            }
            Err::<(), _>(HandlerError::new("hopeless").dead())
        }
    };
    let layer = |pool, recovery: &Recovery| {
        let deaths = deaths.clone();
        let keep = Keep::failed(recovery).on_dead(move |_, _| {
            deaths.fetch_add(1, Ordering::SeqCst);
        });
        IdempotentWebhook::new(pool, "test", presets::github(secret())).keep(keep)
    };
    let database = Database::new().await;
    let (provider, other) = (recovery(&database.pool), recovery(&database.pool));
    let route = |recovery| {
        let layer = layer(database.pool.clone(), recovery);
        Router::new().route("/", post(handler.clone()).layer(layer))
    };
    let (router, elsewhere) = (route(&provider), route(&other));
    insert_taken(&database, "a", "null", 0).await;
    let (elsewhere, mut taken) = held_back(&elsewhere);
    let task = other.spawn(elsewhere);
    taken.reached().await;
    let sent = spawn_send(&router, github("a", "{}"));
    gate.reached().await;
    taken.open();
    database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(sent.await.unwrap().outcome, "kept");
    database.until(ONE_DEAD).await;
    task.stop().await;
    assert_eq!(deaths.load(Ordering::SeqCst), 1);
    assert_rows!(database, claims: 0, effects: 0);
}

/// The handler discards the delivery, but its attempt has lost its transaction, and another attempt
/// has taken the delivery since.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_discard_has_an_effect_only_by_the_attempt_that_was_the_last_to_take_it() {
    let (mut gate, way) = gate();
    let handler = move |_: DedupeTx| {
        let way = way.clone();
        async move {
            way.pass().await;
            Err::<(), _>(HandlerError::new("not for us").discard())
        }
    };
    let app = TestApp::keeping_all(|keep| keep, handler).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    app.database
        .run(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction';
             update idempotent_webhook.kept_deliveries set takes = takes + 1",
        )
        .await;
    gate.open();
    assert_eq!(sent.await.unwrap().outcome, "failed");
    assert_eq!(app.database.kept().await.state, "due");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// While an attempt runs, its delivery is discarded. The provider sends the delivery again, and it
/// is kept in a new row.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_failure_is_not_written_to_a_later_row_of_the_same_delivery() {
    let (mut gate, handler) = failing_behind_gate();
    let app = TestApp::keeping_all(|keep| keep, handler).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    app.database
        .run(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction';
             delete from idempotent_webhook.kept_deliveries",
        )
        .await;
    // The attempt at the new row has taken the delivery, and waits for its claim. It holds no lock
    // yet.
    let pool = app.database.another_pool(1).await;
    let mut claiming = pool.begin().await.unwrap();
    let claim =
        "insert into idempotent_webhook.deliveries (endpoint, delivery_id) values ('test', 'a')";
    claiming.execute(claim).await.unwrap();
    let (mut later_gate, later) = failing_behind_gate();
    let pool = app.database.another_pool(5).await;
    let another = Process::new(pool, keep_all, later);
    let sent_again = spawn_send(&another.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(sent.await.unwrap(), answer(502, "kept", ""));
    let is_taken = "exists (
        select from idempotent_webhook.kept_deliveries
        where taken_by is not null and last_failed_at is null
    )";
    app.database.until(is_taken).await;
    claiming.rollback().await.unwrap();
    later_gate.reached().await;
    later_gate.open();
    assert_eq!(sent_again.await.unwrap(), answer(502, "kept", ""));
    assert_eq!(app.database.kept().await.attempts, 1);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The answer to the first write of the result was lost, so the process writes the result again.
#[tokio::test]
async fn k4_a_result_that_is_written_again_counts_once() {
    let database = Database::new().await;
    for id in ["a", "b", "c"] {
        insert_taken(&database, id, "1", 0).await;
    }
    let now = sqlx::postgres::types::PgInterval::default();
    for time in 0..2 {
        sqlx::query(include_str!("../../../src/recovery/kept/give_back.sql"))
            .bind("test")
            .bind("")
            .bind("a")
            .bind(1_i64)
            .bind(now)
            .bind(1)
            .bind(false)
            .bind(None::<i16>)
            .execute(&database.pool)
            .await
            .unwrap();
        for (id, state) in [("b", "due"), ("c", "dead")] {
            let written = sqlx::query(include_str!("../../../src/recovery/kept/fail.sql"))
                .bind("test")
                .bind("")
                .bind(id)
                .bind(500_i16)
                .bind("not yet")
                .bind(state)
                .bind(now)
                .bind(0)
                .bind(1_i64)
                .bind(10)
                .bind(now)
                .bind("recovery")
                .bind(now)
                .fetch_optional(&database.pool)
                .await
                .unwrap();
            // The process that writes the result again must log and count the death, because
            // nothing has done so yet.
            let died = written.map(|row| row.get::<bool, _>("died"));
            match state {
                "dead" => assert_eq!(died, Some(true), "{time}"),
                _ => assert_eq!(died, (time == 0).then_some(false), "{time}"),
            }
        }
    }
    let once = "(
        select array_agg(attempts || ' ' || jsonb_array_length(history) order by delivery_id)
        from idempotent_webhook.kept_deliveries
    ) = array['1 0', '2 1', '2 1']";
    database.until(once).await;
}

/// An earlier attempt may still write to the row. The row counts how often it was taken (`takes`),
/// and the earlier attempt has an older count, so its write has no effect.
#[tokio::test]
async fn k4_a_failure_that_makes_a_recorded_delivery_due_counts_as_a_take() {
    let app = TestApp::keeping(|keep| keep, Failing::times(1).handler()).await;
    let recorded = "insert into idempotent_webhook.kept_deliveries
            (endpoint, delivery_id, state, attempts, takes)
        values ('test', 'a', 'recorded', 1, 5)";
    app.database.run(recorded).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let is_due = "exists (
        select from idempotent_webhook.kept_deliveries where state = 'due' and takes = 6
    )";
    app.database.until(is_due).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}
