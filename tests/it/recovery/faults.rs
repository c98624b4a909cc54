//! Processes are killed, connections are lost, answers do not arrive, Postgres is unreachable, or a dependency of a
//! handler is down.

use std::convert::identity;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, presets,
};
use sqlx::Executor;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::support::{
    Answered, Database, Failing, Gauge, NONE_TAKEN, NOTHING_KEPT, ONE_DEAD, ONE_WAITS_FOR_A_LOCK,
    Process, Runs, TestApp, answer, assert_accepted, assert_kept, assert_rows, endpoint, gated,
    github, github_delivery, insert_effect, keep, keep_accepted, keep_all, lock, lose_connections,
    outcomes, recover, recover_all, secret, send, send_in_one_group, soon, spawn_send,
    write_effect,
};

/// The process is killed as by `kill -9`: everything in memory and all connections are lost.
#[tokio::test(flavor = "multi_thread")]
async fn r6_a_process_that_is_killed_in_the_handler_loses_nothing_that_is_kept_first() {
    for way in [keep_all, keep_accepted] {
        let failing = Failing::times(0);
        let app = TestApp::keeping(identity, failing.handler()).await;
        let (mut gate, handler) = gated();
        let options = app.database.options();
        let killed = Runtime::new().unwrap();
        killed.spawn(async move {
            let pool = PgPoolOptions::new().connect_lazy_with(options);
            let process = Process::new(pool, way, handler);
            send(&process.router, github("a", "{}")).await;
            std::future::pending::<()>().await;
        });
        gate.reached().await;
        killed.shutdown_background();
        app.settled().await;
        assert_kept!(app.database, "due", attempts: 1, retries: 0);
        app.database.lose_takers().await;
        recover_all(&app).await;
        assert_eq!(failing.attempts(), [2]);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// A process that did not make the attempts finds out that the attempts killed their processes, and reports the death.
#[tokio::test(flavor = "multi_thread")]
async fn r12_what_has_killed_its_processes_is_reported_as_dead_once() {
    let (told, mut dead) = tokio::sync::mpsc::unbounded_channel();
    let set = |keep: Keep| {
        keep.on_dead(move |delivery, reason| {
            let provider = delivery.provider().to_owned();
            told.send((provider, delivery.id().to_string(), reason.to_owned()))
                .unwrap();
        })
    };
    let app = TestApp::keeping(set, Failing::times(9).handler()).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set attempts = 4, retries = 3, unfinished = 1, taken_by = 0",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    let (provider, id, reason) = dead.try_recv().unwrap();
    assert_eq!((&*provider, &*id), ("github", "due-1"));
    assert!(reason.contains("its attempts did not end"), "{reason}");
    assert!(dead.try_recv().is_err(), "reported twice");
    app.database
        .until("exists (select from idempotent_webhook.activity where outcome = 'dead')")
        .await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r14_connections_that_are_lost_before_the_keep_is_committed_are_no_success() {
    let app = TestApp::keeping(Keep::acknowledge, Failing::times(9).handler()).await;
    let locked = lock(&app.database, "kept_requests").await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    lose_connections(&app.database, 2).await;
    assert_eq!(sent.await.unwrap(), answer(500, "failed", ""));
    drop(locked);
    app.database.until(NOTHING_KEPT).await;

    // If only one connection is lost, the sender does not notice.
    let locked = lock(&app.database, "kept_requests").await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    lose_connections(&app.database, 1).await;
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    drop(locked);
    assert_eq!(sent.await.unwrap(), answer(200, "kept", ""));
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// A group is the deliveries that are kept in one transaction. The next group uses the connection of the previous
/// group, so the loss of the connection shows only when the next group is written.
#[tokio::test]
async fn r15_a_single_connection_that_is_lost_fails_nothing() {
    let runs = Runs::default();
    let app = runs.app().await;
    app.database
        .run(
            "create function wait() returns trigger language plpgsql as $$
             begin
                if new.uri = '/?slow' then perform pg_advisory_xact_lock_shared(1); end if;
                return new;
             end $$;
             create trigger wait before insert on idempotent_webhook.kept_requests
                for each row execute function wait()",
        )
        .await;
    let mut slow = app.database.another_pool(1).await.begin().await.unwrap();
    slow.execute("select pg_advisory_xact_lock(1)")
        .await
        .unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = ["a", "b"].map(|id| github_delivery().id(id).uri("/?slow").request());
    let sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let waits = ONE_WAITS_FOR_A_LOCK;
    app.database.until(waits).await;
    lose_connections(&app.database, 1).await;
    app.database.until(waits).await;
    drop(slow);
    assert_accepted(sent).await;
    recover_all(&app).await;
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test]
async fn r15_two_lost_connections_fail_the_group_and_nothing_waits_afterwards() {
    let runs = Runs::default();
    let app = runs.app().await;
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = (0..10).map(|id| github(&format!("id-{id}"), "{}"));
    let sent = send_in_one_group(&app, group.collect()).await;
    // The first transaction is lost, and then the transaction with the group.
    lose_connections(&app.database, 4).await;
    let refused = (503, "failed".to_owned());
    assert_eq!(outcomes(sent).await, vec![refused; 11]);
    drop(locked);
    app.database.until(NOTHING_KEPT).await;

    for id in 0..10 {
        let again = soon(app.send(github(&format!("id-{id}"), "{}"))).await;
        assert_eq!(again, answer(200, "accepted", ""));
    }
    recover_all(&app).await;
    assert_rows!(app.database, claims: 10, effects: 10);
}

/// A server over TCP that hangs up once, instead of answering the commit of kept deliveries.
async fn without_an_answer(database: &Database) -> PgConnectOptions {
    let options = database.options();
    let socket = options.get_socket().unwrap().join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hangs_up = Arc::new(AtomicBool::new(true));
    tokio::spawn(async move {
        loop {
            let client = listener.accept().await.unwrap().0;
            let server = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(relay(client, server, hangs_up.clone()));
        }
    });
    database.options_over_tcp().await.port(port)
}

async fn relay(mut client: TcpStream, mut server: UnixStream, hangs_up: Arc<AtomicBool>) {
    let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
    let mut keeps = false;
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let Ok(length @ 1..) = read else { return };
                let message = &sent[..length];
                server.write_all(message).await.unwrap();
                let has = |text: &[u8]| message.windows(text.len()).any(|part| part == text);
                keeps |= has(b"insert into idempotent_webhook.kept_requests");
                if keeps && has(b"commit") && hangs_up.swap(false, Ordering::Relaxed) {
                    assert!(server.read(&mut answered).await.unwrap() > 0);
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                client.write_all(&answered[..length]).await.unwrap();
            }
        }
    }
}

/// If the provider waits for the handler's answer, the handler runs at once. Otherwise recovery runs it, unless the
/// endpoint is paused.
#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_committed_although_the_answer_is_lost_is_kept_and_runs() {
    let handled_first: fn(&Recovery) -> Keep = keep_all;
    let ways = [
        (handled_first, false, "processed"),
        (keep_accepted, false, "accepted"),
        (keep_accepted, true, "accepted"),
    ];
    for (way, paused, outcome) in ways {
        let runs = Runs::default();
        let app = runs.app().await;
        if paused {
            endpoint(&app).pause().await.unwrap();
        }
        let pool = PgPoolOptions::new().connect_lazy_with(without_an_answer(&app.database).await);
        let process = Process::new(pool, way, runs.handler());
        let sent = soon(send(&process.router, github("a", "{}"))).await;
        assert_eq!(sent, answer(200, outcome, ""));
        if outcome == "processed" {
            app.database.until(NOTHING_KEPT).await;
        } else {
            let attempts = i32::from(!paused);
            assert_kept!(app.database, "due", attempts: attempts, retries: 0);
        }
        assert_eq!(runs.of("a"), u32::from(outcome == "processed"));
        endpoint(&app).resume().await.unwrap();
        app.database.lose_takers().await;
        recover_all(&app).await;
        assert_eq!(runs.of("a"), 1);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// Postgres does not notice a closed connection while the session waits for a lock.
#[tokio::test(flavor = "multi_thread")]
async fn r15_no_session_waits_on_for_a_row_once_the_sender_is_answered() {
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let layer = layer.keep(keep_accepted(recovery));
        layer.database_timeout(Duration::from_secs(1))
    };
    let app = TestApp::recovered(presets::github(secret()), set, write_effect).await;
    app.database.insert_due(1).await;
    let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
    locked
        .execute("select from idempotent_webhook.kept_deliveries for update")
        .await
        .unwrap();
    assert_eq!(app.send(github("due-1", "{}")).await.status, 503);
    app.database
        .until(&format!("not {ONE_WAITS_FOR_A_LOCK}"))
        .await;
    locked.rollback().await.unwrap();
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// A provider that does not wait for the answer may not send the delivery again.
#[tokio::test(flavor = "multi_thread")]
async fn g8_what_is_being_kept_when_its_sender_hangs_up_is_handled() {
    let app = TestApp::keeping_all(|keep| keep, write_effect).await;
    let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
    locked
        .execute("lock table idempotent_webhook.kept_deliveries in access exclusive mode")
        .await
        .unwrap();
    let sent = spawn_send(&app.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    sent.abort();
    locked.commit().await.unwrap();
    // No recovery is running.
    app.database
        .until("exists (select from idempotent_webhook.deliveries)")
        .await;
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// More senders than one batch has deliveries, so that a sender always waits.
const SENDERS: usize = 200;

/// Starts senders that send until they are refused. Each returns how many of its deliveries were accepted.
fn keep_sending(process: &Process) -> Vec<JoinHandle<usize>> {
    (0..SENDERS)
        .map(|sender| {
            let router = process.router.clone();
            tokio::spawn(async move {
                let id = |accepted| format!("{sender}-{accepted}");
                let mut accepted = 0;
                while send(&router, github(&id(accepted), "{}")).await.status == 200 {
                    accepted += 1;
                }
                accepted
            })
        })
        .collect()
}

/// Asserts that all deliveries whose senders got a success are kept.
async fn assert_all_kept(app: &TestApp, senders: Vec<JoinHandle<usize>>) {
    let mut accepted = 0;
    for sender in senders {
        accepted += soon(sender).await.unwrap();
    }
    // A delivery may have been kept although its sender was refused, because the answer to the commit was lost.
    let kept = endpoint(app)
        .kept(&Filter::new(), None, 100_000)
        .await
        .unwrap();
    assert!((accepted..=accepted + SENDERS).contains(&kept.len()));
}

const MANY_KEPT: &str = "(select count(*) from idempotent_webhook.kept_deliveries) > 1000";

#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_accepted_while_the_pool_is_closed_is_kept() {
    let runs = Runs::default();
    let app = runs.app().await;
    endpoint(&app).pause().await.unwrap();
    let pool = app.database.another_pool(5).await;
    let process = Process::new(pool.clone(), keep_accepted, runs.handler());
    let senders = keep_sending(&process);
    app.database.until(MANY_KEPT).await;
    soon(pool.close()).await;
    assert_all_kept(&app, senders).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_queue_that_is_never_empty_leaves_the_only_connection_to_others() {
    let runs = Runs::default();
    let app = runs.app().await;
    endpoint(&app).pause().await.unwrap();
    let pool = app.database.another_pool(1).await;
    let process = Process::new(pool.clone(), keep_accepted, runs.handler());
    let senders = keep_sending(&process);
    app.database.until(MANY_KEPT).await;
    for _ in 0..10 {
        soon(pool.acquire()).await.unwrap();
    }
    soon(pool.close()).await;
    assert_all_kept(&app, senders).await;
}

#[tokio::test]
async fn r15_an_exhausted_pool_is_a_503_and_nothing_waits_afterwards() {
    for way in [keep_all, keep_accepted] {
        let runs = Runs::default();
        let set = |layer: IdempotentWebhook, recovery: &Recovery| {
            let layer = layer.database_timeout(Duration::from_millis(1500));
            layer.keep(way(recovery))
        };
        let github_preset = presets::github(secret());
        let app = TestApp::recovered(github_preset, set, runs.handler()).await;
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(app.database.pool.acquire().await.unwrap());
        }
        let send_many = || {
            let sent = (0..20).map(|id| spawn_send(&app.router, github(&format!("id-{id}"), "{}")));
            sent.collect()
        };
        let refused = (503, "failed".to_owned());
        assert_eq!(outcomes(send_many()).await, vec![refused; 20]);
        assert_rows!(app.database, claims: 0, effects: 0);
        drop(taken);
        for (status, outcome) in outcomes(send_many()).await {
            assert_eq!(status, 200, "{outcome}");
        }
        recover_all(&app).await;
        assert_rows!(app.database, claims: 20, effects: 20);
    }
}

/// A delivery that would be kept only after its failure is neither kept nor acknowledged. A delivery that was kept
/// first stays kept, and its failure is written once Postgres is back.
#[tokio::test(flavor = "multi_thread")]
async fn r14_a_postgres_that_crashes_in_the_handler_loses_only_what_is_not_acknowledged() {
    let server = Arc::new(ThrowawayPostgres::start(Durability::Durable).await.unwrap());
    let pool = PgPoolOptions::new().connect_lazy_with(server.options("postgres"));
    idempotent_webhook::migrate(&pool).await.unwrap();
    let crashes = Arc::new(AtomicBool::new(true));
    let handler = {
        let (server, crashes) = (server.clone(), crashes.clone());
        move |_: DedupeTx| {
            if crashes.swap(false, Ordering::Relaxed) {
                tokio::task::block_in_place(|| server.crash()).unwrap();
            }
            std::future::ready(Err::<(), _>(HandlerError::new("not yet")))
        }
    };
    // Counts the deliveries, the kept requests, and the recorded failures.
    let rows = async || -> (i64, i64, i64) {
        sqlx::query_as(
            "select
                (select count(*) from idempotent_webhook.deliveries),
                (select count(*) from idempotent_webhook.kept_requests),
                (select count(*) from idempotent_webhook.kept_deliveries where reason = 'not yet')",
        )
        .fetch_one(&pool)
        .await
        .unwrap()
    };
    let acknowledged = answer(200, "kept", "");

    let acknowledge = |recovery: &Recovery| keep(recovery).acknowledge();
    let failed = Process::new(pool.clone(), acknowledge, handler.clone());
    let sent = send(&failed.router, github("a", "{}")).await;
    assert_eq!(sent, answer(500, "failed", ""));
    server.start_again().await.unwrap();
    assert_eq!(rows().await, (0, 0, 0));
    assert_eq!(send(&failed.router, github("a", "{}")).await, acknowledged);
    assert_eq!(rows().await, (0, 1, 1));

    crashes.store(true, Ordering::Relaxed);
    let acknowledge = |recovery: &Recovery| keep_all(recovery).acknowledge();
    let kept_first = Process::new(pool.clone(), acknowledge, handler);
    // The delivery is kept, but Postgres can no longer confirm that.
    let sent = send(&kept_first.router, github("b", "{}")).await;
    assert_eq!(sent, answer(500, "failed", ""));
    server.start_again().await.unwrap();
    soon(async {
        while rows().await != (0, 2, 2) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// No other connection is in a transaction.
const NO_TRANSACTION: &str = "not exists (
    select from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
        and backend_type = 'client backend'
)";

#[tokio::test(flavor = "multi_thread")]
async fn r10_an_outage_costs_a_probe_at_a_time_and_ends_without_a_burst() {
    const BREAKER: usize = 3;
    const CONCURRENCY: usize = 2;
    let (down, runs) = (Arc::new(AtomicBool::new(true)), Gauge::default());
    let handler = {
        let (down, runs) = (down.clone(), runs.clone());
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let (down, runs) = (down.clone(), runs.clone());
            Box::pin(async move {
                let work = async {
                    insert_effect(&mut tx, &delivery).await?;
                    match down.load(Ordering::Relaxed) {
                        true => Err(HandlerError::new("down")),
                        false => Ok(StatusCode::OK),
                    }
                };
                runs.during(work).await
            })
        }
    };
    let set = |keep: Keep| {
        let keep = keep.retry_delays([Duration::ZERO; 9]);
        keep.breaker(3, Duration::from_secs(3600))
    };
    let app = TestApp::keeping(set, handler).await;
    app.database.insert_due(60).await;
    let recovery = app.recovery.clone().concurrency(CONCURRENCY);
    let recovery = recovery.spawn(app.router.clone());
    let opened = "exists (
        select from idempotent_webhook.kept_endpoints
        where cardinality(failed_ids) >= 3 and probe_at > now() + interval '50 minutes'
    )";
    // A statement that takes deliveries and was running when the breaker opened does not see the open breaker. It still
    // takes its deliveries.
    app.database
        .until(&format!("{opened} and {NO_TRANSACTION}"))
        .await;
    let probed = format!("{opened} and {NONE_TAKEN}");
    app.database.until(&probed).await;
    let before = runs.all();
    // This includes the deliveries that were running when the breaker opened.
    let at_most = BREAKER + CONCURRENCY;
    assert!((BREAKER..at_most).contains(&before), "{before}");
    // Simulates that the breaker's interval is over.
    let probe = "update idempotent_webhook.kept_endpoints set probe_at = now()";
    for probes in 1..4 {
        app.database.run(probe).await;
        let are_made = "(select sum(retries) from idempotent_webhook.kept_deliveries)";
        let attempts = before + probes;
        let probed = format!("{probed} and {are_made} = {attempts}");
        app.database.until(&probed).await;
        assert_eq!(runs.all(), attempts);
    }
    let spent: i64 = sqlx::query_scalar(
        "select sum(retries) from idempotent_webhook.kept_deliveries where state = 'due'",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(usize::try_from(spent).unwrap(), before + 3);
    assert_rows!(app.database, claims: 0, effects: 0);

    down.store(false, Ordering::Relaxed);
    app.database.run(probe).await;
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert!(runs.most() <= CONCURRENCY, "{}", runs.most());
    assert_rows!(app.database, claims: 60, effects: 60);
}

/// All times come from the clock of Postgres, so the clock of a process does not matter. Here the clock of Postgres is
/// moved.
#[tokio::test(flavor = "multi_thread")]
async fn r6_the_clock_of_a_process_does_not_matter() {
    for shift in ["1 hour", "-1 hour"] {
        let database = Database::new().await;
        database
            .run(&format!(
                "create schema shifted;
                 create function shifted.now() returns timestamptz language sql stable
                 return pg_catalog.now() + interval '{shift}'"
            ))
            .await;
        let options = database.options();
        let options = options.options([("search_path", "shifted,pg_catalog,public")]);
        let pool = PgPoolOptions::new().connect_lazy_with(options);
        let handler = |mut tx: DedupeTx, delivery: Delivery| async move {
            insert_effect(&mut tx, &delivery).await?;
            let error = HandlerError::new("not yet");
            match (delivery.id().as_str(), delivery.attempt()) {
                ("later", _) => Err(error.retry_after(Duration::from_secs(1800))),
                ("soon", 1 | 2) => Err(error),
                _ => Ok(()),
            }
        };
        let process = Process::new(pool.clone(), keep, handler);
        for id in ["later", "soon"] {
            let kept = send(&process.router, github(id, "{}")).await;
            assert_eq!(kept, answer(500, "kept", ""));
        }
        // One delivery is taken by a process that lives, and the other by a process that is gone.
        database.insert_process().await;
        database.insert_due(2).await;
        database
            .run(&format!(
                "update idempotent_webhook.kept_deliveries
                 set next_attempt_at = now() + interval '{shift}',
                     taken_by = case delivery_id when 'due-1' then 1 else 0 end
                 where delivery_id like 'due-%'"
            ))
            .await;
        let recovery = process.recover();
        let both_are_done = "not exists (
            select from idempotent_webhook.kept_deliveries where delivery_id in ('soon', 'due-2')
        )";
        database.until(both_are_done).await;
        recovery.stop().await;
        let others: Vec<(String, i32)> = sqlx::query_as(
            "select delivery_id, attempts from idempotent_webhook.kept_deliveries order by 1",
        )
        .fetch_all(&database.pool)
        .await
        .unwrap();
        assert_eq!(others, [("due-1".to_owned(), 1), ("later".to_owned(), 1)]);
        assert_rows!(database, claims: 2, effects: 2);
        pool.close().await;
    }
}
