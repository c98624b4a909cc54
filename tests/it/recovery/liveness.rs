//! Guarantee K4: a process is either alive or dead. It takes deliveries under a number, and sends heartbeats for this
//! number. While the process is alive, no other process gets the deliveries that it has taken, no matter how long they
//! run. If the process loses track of a delivery that it has taken, the delivery becomes free again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::post;
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, presets,
};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgPool};

use crate::support::{
    Answered, Database, Failing, NOTHING_KEPT, ONE_DEAD, Process, SOON, TestApp, answer,
    assert_accepted, assert_kept, assert_rows, endpoint, gate, github, held_back, insert_effect,
    keep, keep_accepted, keep_all, keeping_by, lock, logged, longer_than_silence, recover,
    recover_all, recovery, secret, send, soon, spawn_send, write_effect,
};

/// Takes all connections of a pool. Connections in use are taken as soon as they are returned.
fn hold_all(pool: &PgPool) -> Vec<tokio::task::JoinHandle<PoolConnection<sqlx::Postgres>>> {
    (0..pool.options().get_max_connections())
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire().await.unwrap() })
        })
        .collect()
}

/// After the rollback of the failed attempt, the pool has no free connection to record the failure.
#[tokio::test(flavor = "multi_thread")]
async fn k4_the_word_of_a_failed_attempt_holds_however_long_it_takes_to_record_it() {
    for by_recovery in [false, true] {
        let database = Database::new().await;
        let (runs, deaths) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (mut gate, waits) = gate();
        let handler = {
            let runs = runs.clone();
            move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
                let (runs, waits) = (runs.clone(), waits.clone());
                Box::pin(async move {
                    runs.fetch_add(1, Ordering::SeqCst);
                    insert_effect(&mut tx, &delivery).await?;
                    waits.pass().await;
                    Err(HandlerError::new("hopeless").dead())
                })
            }
        };
        let hook = deaths.clone();
        let way = |recovery: &Recovery| {
            keep_all(recovery).on_dead(move |_, _| {
                hook.fetch_add(1, Ordering::SeqCst);
            })
        };
        let pool = database.another_pool(2).await;
        let process = Process::new(pool.clone(), way, handler.clone());
        let mut task = None;
        let sent = if by_recovery {
            database.insert_due(1).await;
            task = Some(process.recover());
            None
        } else {
            Some(spawn_send(&process.router, github("a", "{}")))
        };
        gate.reached().await;
        let other = Process::new(database.another_pool(5).await, keep, handler);
        let other = other.recover();
        let held = hold_all(&pool);
        tokio::time::sleep(longer_than_silence()).await;
        gate.open();
        // The rollback returns the attempt's connection to the pool.
        let mut connections = Vec::new();
        for held in held {
            connections.push(soon(held).await.unwrap());
        }
        // In this time, the other process looks for due deliveries several times.
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(connections);
        database.until(ONE_DEAD).await;
        if let Some(sent) = sent {
            assert_eq!(soon(sent).await.unwrap().outcome, "kept");
        }
        if let Some(task) = task {
            soon(task.stop()).await;
        }
        soon(other.stop()).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert_eq!(deaths.load(Ordering::SeqCst), 1);
        assert_rows!(database, claims: 0, effects: 0);
    }
}

/// The attempt waits in a middleware, and no connection of the pool is free.
#[tokio::test(flavor = "multi_thread")]
async fn k4_an_attempt_that_waits_before_its_claim_is_not_taken_over() {
    for is_spawned in [true, false] {
        let database = Database::new().await;
        let pool = database.another_pool(2).await;
        let process = Process::new(pool.clone(), keep, write_effect);
        database.insert_due(1).await;
        let (router, mut gate) = held_back(&process.router);
        let recovery = process.recovery.clone();
        let work = tokio::spawn(async move {
            if is_spawned {
                recovery.spawn(router);
                std::future::pending().await
            } else {
                recovery.run_due(&router).await
            }
        });
        gate.reached().await;
        let failing = async |_: DedupeTx| StatusCode::BAD_GATEWAY;
        let other = Process::new(database.another_pool(5).await, keep, failing);
        let other = other.recover();
        let held = hold_all(&pool);
        tokio::time::sleep(longer_than_silence()).await;
        gate.open();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_kept!(database, "due", attempts: 2, retries: 1);
        for held in held {
            drop(held.await.unwrap());
        }
        database.until(NOTHING_KEPT).await;
        work.abort();
        soon(other.stop()).await;
        assert_rows!(database, claims: 1, effects: 1);
    }
}

/// The statement that took the delivery was committed, but its answer was lost.
#[tokio::test(flavor = "multi_thread")]
async fn k4_what_a_process_that_lives_has_lost_is_free_again() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    let task = recover(&app);
    app.database
        .until("exists (select from idempotent_webhook.processes)")
        .await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set attempts = 2, retries = 1, takes = 1,
                 taken_by = (select min(number) from idempotent_webhook.processes)",
        )
        .await;
    let taken = "(select taken_by in (select number from idempotent_webhook.processes)
        from idempotent_webhook.kept_deliveries)";
    app.database.until(taken).await;
    // The process replaces its number every ten seconds. If the delivery was taken under the next number, the process
    // gives that number up only after it has used it.
    tokio::time::sleep(Duration::from_secs(16)).await;
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn k4_a_living_process_is_not_told_to_be_dead() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(1).await;
    let log = logged(recover_all(&app)).await;
    assert!(!log.contains("counts as dead"), "{log}");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Sends the heartbeats of a process with the number 1.
fn beats(database: &Database) -> tokio::task::JoinHandle<()> {
    let pool = database.pool.clone();
    tokio::spawn(async move {
        loop {
            pool.execute("update idempotent_webhook.processes set heartbeat = heartbeat + 1 where number = 1")
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    })
}

/// During a failover, no process can write heartbeats. Afterwards, each process resumes its heartbeats at its own time.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_process_that_was_silent_itself_does_not_take_another_one_for_dead() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_process().await;
    app.database.insert_due(1).await;
    app.database
        .run("update idempotent_webhook.kept_deliveries set takes = 1, taken_by = 1")
        .await;
    let task = recover(&app);
    app.database
        .until("(select count(*) = 3 from idempotent_webhook.processes)")
        .await;
    // The heartbeats of the other process resume later than the heartbeats of this process.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let beats = beats(&app.database);
    tokio::time::sleep(longer_than_silence()).await;
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    // Now the other process is dead.
    beats.abort();
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The clock of the database jumps forward while two processes live. Once one of them has died, the clock jumps back by
/// an hour, as in a failover to another host.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_clock_of_the_database_that_jumps_makes_no_process_live_or_die() {
    let database = Database::new().await;
    database
        .run(
            "create schema shifted;
             create table shifted.clock (shift interval);
             insert into shifted.clock values ('0');
             create function shifted.now() returns timestamptz language sql stable
             return (select pg_catalog.now() + shift from shifted.clock)",
        )
        .await;
    let pool = || {
        let options = [("search_path", "shifted,pg_catalog,public")];
        PgPoolOptions::new().connect_lazy_with(database.options().options(options))
    };
    database.insert_due(1).await;
    database
        .run("update idempotent_webhook.kept_deliveries set next_attempt_at = now() - interval '2 hours'")
        .await;
    // Dropping the runtime is like killing the process.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let process = Process::new(pool(), keep, write_effect);
    let (router, mut gate) = held_back(&process.router);
    runtime.spawn(async move { process.recovery.spawn(router) });
    gate.reached().await;
    let other = Process::new(pool(), keep, write_effect);
    let task = other.recover();
    tokio::time::sleep(longer_than_silence()).await;
    database
        .run("update shifted.clock set shift = '10 seconds'")
        .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_kept!(database, "due", attempts: 2, retries: 1);

    runtime.shutdown_background();
    database
        .run("update shifted.clock set shift = '-1 hour'")
        .await;
    database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_rows!(database, claims: 1, effects: 1);
}

/// A process stops at each deploy, and at the end of each job.
#[tokio::test]
async fn k4_a_process_that_stops_is_not_taken_for_dead() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    let numbers = "select count(*) from idempotent_webhook.processes";
    let task = recover(&app);
    app.database
        .until("(select count(*) = 2 from idempotent_webhook.processes)")
        .await;
    task.stop().await;
    assert_eq!(app.database.count(numbers).await, 0);

    app.database.insert_due(1).await;
    let job = Process::new(app.database.another_pool(5).await, keep, write_effect);
    let attempts = job.recovery.run_due(&job.router).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(app.database.count(numbers).await, 0);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A failover happens while handlers hold all connections.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_process_has_heartbeats_although_its_pool_is_in_use() {
    let database = Database::new().await;
    let pool = database.another_pool(2).await;
    let process = Process::new(pool.clone(), keep, write_effect);
    let task = process.recover();
    database
        .until("exists (select from idempotent_webhook.processes)")
        .await;
    let (mut held, mut pids) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let mut connection = pool.acquire().await.unwrap();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        pids.push(pid);
        held.push(connection);
    }
    let heartbeats = "select max(heartbeat) from idempotent_webhook.processes";
    let before = database.count(heartbeats).await;
    let ended: Vec<bool> = sqlx::query_scalar(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and pid <> all($1)
             and query = 'commit'",
    )
    .bind(&pids)
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(!ended.is_empty());
    // One of these heartbeats may have been on its way.
    let goes_on = format!("({heartbeats}) >= {before} + 3");
    database.until(&goes_on).await;
    drop(held);
    soon(task.stop()).await;
    assert_rows!(database, claims: 0, effects: 0);
}

/// A job that runs from time to time, after all other processes have crashed.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_job_waits_until_it_knows_which_processes_are_dead() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "insert into idempotent_webhook.processes values (1, 1);
             update idempotent_webhook.kept_deliveries set takes = 1, taken_by = 1",
        )
        .await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The host of a process may disappear before the process commits. Postgres must not keep the transaction open for
/// hours.
#[tokio::test(flavor = "multi_thread")]
async fn k4_what_a_process_writes_of_its_own_may_not_be_idle_for_long() {
    let failing = Failing::times(1);
    let app = TestApp::keeping_all(|keep| keep, failing.handler()).await;
    app.database
        .run(
            "create function is_limited() returns trigger language plpgsql as $$
             begin
                 if current_setting('idle_in_transaction_session_timeout') = '0' then
                     raise 'it could be idle for ever';
                 end if;
                 return new;
             end $$;
             create trigger is_limited before insert or update on idempotent_webhook.processes
             for each row execute function is_limited();
             create trigger is_limited before insert or update on idempotent_webhook.kept_deliveries
             for each row execute function is_limited();
             create trigger is_limited before insert or update on idempotent_webhook.kept_endpoints
             for each row execute function is_limited()",
        )
        .await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let task = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_eq!(failing.attempts(), [1, 2]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// One statement commits a batch and starts the transaction of the next batch, so the next transaction needs its own
/// time limits.
#[tokio::test(flavor = "multi_thread")]
async fn k4_each_batch_of_what_is_accepted_waits_and_is_idle_for_a_limited_time() {
    let app = keeping_by(keep_accepted, write_effect).await;
    endpoint(&app).pause().await.unwrap();
    // A sequence keeps its value after a rollback.
    app.database
        .run(
            "create sequence unlimited;
             create function count_unlimited() returns trigger language plpgsql as $$
             begin
                 if '0' in (
                     current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')
                 ) then
                     perform nextval('unlimited');
                 end if;
                 return new;
             end $$;
             create trigger count_unlimited before insert on idempotent_webhook.kept_deliveries
             for each row execute function count_unlimited()",
        )
        .await;
    let sent = (0..300).map(|id| spawn_send(&app.router, github(&format!("id-{id}"), "{}")));
    assert_accepted(sent.collect()).await;
    let unlimited = app
        .database
        .count("select count(*) from unlimited where is_called");
    assert_eq!(unlimited.await, 0);
    let kept = endpoint(&app).kept(&Filter::new(), None, 1000).await;
    assert_eq!(kept.unwrap().len(), 300);
}

/// The application has left a connection of the pool in a transaction.
#[tokio::test]
async fn g10_a_process_that_says_that_it_lives_commits_nothing_of_the_application() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let process = Process::new(pool.clone(), keep, write_effect);
    let mut connection = pool.acquire().await.unwrap();
    connection
        .execute("begin; insert into effects values ('stray')")
        .await
        .unwrap();
    drop(connection);
    // Before it takes a delivery, the process reports that it is alive.
    let _ = process.recovery.run_due(&process.router).await;
    assert_rows!(database, claims: 0, effects: 0);
    assert!(
        process
            .recovery
            .run_due(&process.router)
            .await
            .unwrap()
            .is_empty()
    );
    assert_rows!(database, claims: 0, effects: 0);
}

/// If a process that cannot write its heartbeat took a delivery, another process could take the delivery at the same
/// moment.
#[tokio::test]
async fn k4_a_process_that_others_cannot_hear_takes_nothing() {
    let app = TestApp::keeping_all(|keep| keep, write_effect).await;
    let locked = lock(&app.database, "processes").await;
    let refused = app.send(github("a", "{}")).await;
    assert_eq!(refused, answer(503, "failed", "temporarily unavailable"));
    assert_eq!(app.runs(), 0);
    app.database.until(NOTHING_KEPT).await;
    locked.rollback().await.unwrap();
    let processed = app.send(github("a", "{}")).await;
    assert_eq!(processed, answer(200, "processed", "done"));
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The delivery was dead, and its last attempts were unfinished.
#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_sent_again_after_it_was_dead_begins_anew() {
    let hour = Duration::from_secs(3600);
    let way = |recovery: &Recovery| keep_accepted(recovery).retry_delays([hour; 3]);
    let app = keeping_by(way, write_effect).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set state = 'dead', retries = 3, takes = 3, taken_by = 0, unfinished = 2",
        )
        .await;
    assert_eq!(app.send(github("due-1", "{}")).await.outcome, "accepted");
    let task = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// One delivery has killed its process twice, together with the deliveries that ran at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn r6_what_did_not_end_twice_waits_and_then_runs_alone() {
    let running = Arc::new(Mutex::new(Vec::<String>::new()));
    let beside = Arc::new(Mutex::new(Vec::<String>::new()));
    let handler = {
        let (running, beside) = (running.clone(), beside.clone());
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let (running, beside) = (running.clone(), beside.clone());
            Box::pin(async move {
                let id = delivery.id().to_string();
                insert_effect(&mut tx, &delivery).await?;
                {
                    let mut now = running.lock().unwrap();
                    now.push(id.clone());
                    if now.len() > 1 {
                        beside.lock().unwrap().extend_from_slice(&now);
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                running.lock().unwrap().retain(|other| *other != id);
                Ok(StatusCode::OK)
            })
        }
    };
    let database = Database::new().await;
    let pool = database.another_pool(20).await;
    let recovery = Recovery::new(pool.clone()).concurrency(8);
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
        .keep(Keep::failed(&recovery).retry_delays([SOON; 5]));
    let router: Router = Router::new().route("/", post(handler).layer(layer));
    database.insert_due(60).await;
    // `due-7` is unfinished for the second time.
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set attempts = 3, retries = 2, takes = 2, unfinished = 1, taken_by = 0
             where delivery_id = 'due-7'",
        )
        .await;
    let task = recovery.spawn(router);
    database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_rows!(database, claims: 60, effects: 60);
    let beside = beside.lock().unwrap();
    assert!(beside.len() > 1, "nothing has run at the same time");
    assert!(!beside.iter().any(|id| id == "due-7"), "{beside:?}");
}

/// A handler may keep the head of its request, for example in a log that another task writes. The slot of the attempt
/// becomes free anyway.
#[tokio::test(flavor = "multi_thread")]
async fn r9_a_handler_that_keeps_the_head_of_its_request_does_not_hold_recoverys_place() {
    let heads = Arc::new(Mutex::new(Vec::<Parts>::new()));
    let handler = {
        let heads = heads.clone();
        move |mut tx: DedupeTx, delivery: Delivery, head: Parts| -> Answered {
            heads.lock().unwrap().push(head);
            Box::pin(async move {
                insert_effect(&mut tx, &delivery).await?;
                Ok(StatusCode::OK)
            })
        }
    };
    let database = Database::new().await;
    let recovery = recovery(&database.pool).concurrency(1);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .keep(keep(&recovery));
    let router: Router = Router::new().route("/", post(handler).layer(layer));
    database.insert_due(3).await;
    let task = recovery.spawn(router);
    database.until(NOTHING_KEPT).await;
    soon(task.stop()).await;
    assert_eq!(heads.lock().unwrap().len(), 3);
    assert_rows!(database, claims: 3, effects: 3);
}

/// A copy whose sender hangs up is still handled, and the process does not mistake it for a lost delivery.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_sender_that_hangs_up_while_a_copy_is_in_flight_changes_nothing() {
    let (mut gate, handler) = {
        let (gate, waits) = gate();
        let handler = move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let waits = waits.clone();
            Box::pin(async move {
                insert_effect(&mut tx, &delivery).await?;
                waits.pass().await;
                Ok(StatusCode::OK)
            })
        };
        (gate, handler)
    };
    let app = TestApp::keeping_all(|keep| keep, handler).await;
    // The first attempt's transaction deletes the kept row when it commits. The copy then finds no kept row, and is
    // kept as if it were the first request.
    let first = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let copy = spawn_send(&app.router, github("a", "{}"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    copy.abort();
    gate.open();
    assert_eq!(soon(first).await.unwrap().outcome, "processed");
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A pool may have connection hooks, for example one that sets the role that may write.
#[tokio::test]
async fn r17_the_connection_of_the_heartbeat_has_the_hooks_of_the_pool() {
    let database = Database::new().await;
    let pool = PgPoolOptions::new()
        .max_connections(2)
        .after_connect(|connection, _| {
            Box::pin(async move {
                let hooked = connection.execute("set application_name = 'hooked'");
                hooked.await.map(drop)
            })
        })
        .connect_with((*database.pool.connect_options()).clone())
        .await
        .unwrap();
    let process = Process::new(pool.clone(), keep_all, write_effect);
    let sent = send(&process.router, github("a", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    let one_more = format!(
        "(
            select count(*) from pg_stat_activity
            where datname = current_database() and application_name = 'hooked'
        ) = {}",
        pool.size() + 1
    );
    database.until(&one_more).await;
    database.until(NOTHING_KEPT).await;
    assert_rows!(database, claims: 1, effects: 1);
}
