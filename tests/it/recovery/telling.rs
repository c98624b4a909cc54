//! Guarantees Q4 and R12: the death of a delivery, and the start and end of each problem of an endpoint, is reported at
//! least once, by a process that has a hook. The last report about a problem is true.
//!
//! In the names of tests, *told* means reported to a hook, and a *look* is one search for problems.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::Router;
use idempotent_webhook::recovery::{EndpointChange, RecoveryTask};
use idempotent_webhook::{IdempotentWebhook, Keep, Recovery, presets};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::support::{
    Database, Failing, ONE_DEAD, Process, TestApp, assert_rows, endpoint, github, insert_due_of,
    keep, logged, recovery, secret, soon, until_logged, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// No report to a hook is outstanding.
const ALL_TOLD: &str = "not exists (select from idempotent_webhook.problems where is_there <> is_told)
    and not exists (
        select from idempotent_webhook.kept_deliveries where state = 'dead' and untold_at is not null
    )";

/// The reports that hooks got, in words.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn change(&self) -> impl Fn(&EndpointChange) + Send + Sync + 'static {
        let told = self.0.clone();
        move |change| {
            let EndpointChange {
                endpoint, problem, ..
            } = change;
            let word = if change.is_over { "over" } else { "begun" };
            let text = format!("{endpoint}: {problem} {word}");
            told.lock().unwrap().push(text);
        }
    }

    fn dead(&self, keep: Keep) -> Keep {
        let told = self.0.clone();
        keep.on_dead(move |delivery, reason| {
            let text = format!("{} is dead: {reason}", delivery.id());
            told.lock().unwrap().push(text);
        })
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, text: &str) -> usize {
        self.all().iter().filter(|told| *told == text).count()
    }

    async fn until(&self, expected: &[&str]) {
        soon(async {
            while self.all() != expected {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

/// Simulates that the processes that call a hook have been silent for so long that another process may report in their
/// place. Also makes the next look due.
async fn pass_on(database: &Database) {
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set untold_at = now() - interval '1 second' where untold_at is not null;
             update idempotent_webhook.problems
             set telling_until = now() - interval '1 second' where telling_until is not null;
             update idempotent_webhook.turns set next_at = '-infinity' where task = 'problems'",
        )
        .await;
}

/// A process that serves recovery for the endpoint `test`, and has no delivery to run.
async fn watches(database: &Database, recovery: impl FnOnce(Recovery) -> Recovery) -> Watching {
    let pool = database.another_pool(3).await;
    let recovery = recovery(self::recovery(&pool).poll_interval(DAY));
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
        .keep(Keep::failed(&recovery));
    Watching {
        _layer: layer,
        task: recovery.spawn(Router::<()>::new()),
    }
}

struct Watching {
    _layer: IdempotentWebhook,
    task: RecoveryTask,
}

/// Looks for problems now, as each process does every half minute.
async fn look(database: &Database, told: Option<&Told>) {
    let watching = watches(database, |recovery| match told {
        Some(told) => recovery.on_change(told.change()),
        None => recovery,
    });
    // The task stops after its first look.
    watching.await.task.stop().await;
}

async fn insert_failing(database: &Database, endpoint: &str) {
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('{endpoint}', 'failing', 'dead', 1, now())"
        ))
        .await;
}

/// Relays a connection. At the commit with the number `dropped`, closes the connection instead of passing on the
/// answer.
async fn relay(
    mut client: TcpStream,
    mut server: UnixStream,
    commits: Arc<AtomicUsize>,
    dropped: usize,
) {
    let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let Ok(read @ 1..) = read else { return };
                let sent = &sent[..read];
                let commit = b"commit and chain";
                let is_commit = sent.windows(commit.len()).any(|part| part == commit);
                server.write_all(sent).await.unwrap();
                if is_commit && commits.fetch_add(1, Ordering::Relaxed) == dropped {
                    // The transaction is committed.
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(read @ 1..) = read else { return };
                if client.write_all(&answered[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// One delivery dies in recovery, one dies in a request, and both cause a problem.
#[tokio::test(flavor = "multi_thread")]
async fn q4_r12_no_answer_to_a_commit_that_is_lost_leaves_anything_untold() {
    let mut lost = 0;
    loop {
        let database = Database::new().await;
        database.insert_due(1).await;
        let told = Told::default();
        let commits = Arc::new(AtomicUsize::new(0));
        let options = {
            let commits = commits.clone();
            let relay = move |client, server| relay(client, server, commits.clone(), lost);
            database.options_through(relay).await
        };
        let pool = PgPoolOptions::new()
            .max_connections(5)
            .connect_lazy_with(options);
        let set = |recovery: &Recovery| told.dead(Keep::failed(recovery).retry_delays([]));
        let process = Process::new(pool, set, Failing::times(9).handler());
        let recover = || {
            let recovery = process.recovery.clone().on_change(told.change());
            recovery.spawn(process.router.clone())
        };
        let task = recover();
        let request = crate::support::send(&process.router, github("sent", "{}")).await;
        assert_eq!(request.status, 500);
        // If the answer to the query that takes the delivery is lost, recovery takes the delivery again within ten
        // seconds.
        let is_dead = "select count(*) from idempotent_webhook.kept_deliveries
            where state = 'dead' and delivery_id = 'due-1'";
        tokio::time::timeout(Duration::from_secs(60), async {
            while database.count(is_dead).await == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
        task.stop().await;
        // In the second round of this loop, no answer is lost.
        for _ in 0..2 {
            pass_on(&database).await;
            recover().stop().await;
        }
        database.until(ALL_TOLD).await;
        let dead: Vec<String> = sqlx::query_scalar(
            "select delivery_id from idempotent_webhook.kept_deliveries where state = 'dead'",
        )
        .fetch_all(&database.pool)
        .await
        .unwrap();
        for id in &dead {
            let dead = format!("{id} is dead: not yet");
            assert!(told.count(&dead) >= 1, "{lost}: {:?}", told.all());
        }
        assert!(
            told.count("test: failing begun") >= 1,
            "{lost}: {:?}",
            told.all()
        );

        database
            .run("delete from idempotent_webhook.kept_deliveries")
            .await;
        for _ in 0..2 {
            pass_on(&database).await;
            recover().stop().await;
        }
        database
            .until("not exists (select from idempotent_webhook.problems)")
            .await;
        let changes = told.all();
        let last = changes.iter().rfind(|told| told.starts_with("test:"));
        assert_eq!(last.unwrap(), "test: failing over", "{lost}: {changes:?}");
        if commits.load(Ordering::Relaxed) <= lost {
            // No answer was lost, so each report was made once.
            assert_eq!(changes.len(), 4, "{changes:?}");
            return;
        }
        lost += 1;
    }
}

/// A trigger notifies the connections of the death. sqlx mistakes the notification for an error of the commit, so the
/// answer to the commit is lost.
#[tokio::test]
async fn r12_a_death_whose_commit_has_no_answer_is_logged_and_counted_once() {
    let database = Database::new().await;
    database
        .run(
            "create function notify_death() returns trigger language plpgsql as
                 $$ begin notify deaths; return null; end $$;
             create trigger notify_death after update on idempotent_webhook.kept_deliveries
                 for each row when (new.state = 'dead' and old.state = 'due') execute function notify_death()",
        )
        .await;
    let listening = PgPoolOptions::new()
        .max_connections(5)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("listen deaths").await.map(drop) })
        })
        .connect_lazy_with(database.options());
    let set = |recovery: &Recovery| Keep::all(recovery).retry_delays([]);
    let process = Process::new(listening, set, Failing::times(9).handler());
    let log = logged(async {
        let sent = crate::support::send(&process.router, github("a", "{}")).await;
        assert_eq!(sent.status, 500);
        until_logged("could not record the result of a webhook").await;
        assert_eq!(
            database
                .count(
                    "select count(*) from idempotent_webhook.kept_deliveries where state = 'dead'"
                )
                .await,
            1
        );
        until_logged("webhook dead").await;
    })
    .await;
    let is_dead = |line: &&str| line.contains("ERROR") && line.contains("webhook dead");
    assert_eq!(log.lines().filter(is_dead).count(), 1, "{log}");
    let once = "exists (
        select from idempotent_webhook.kept_deliveries
        where state = 'dead' and attempts = 1 and jsonb_array_length(history) = 1
    )";
    database.until(once).await;
    assert_rows!(database, claims: 0, effects: 0);
}

/// Simulates that each process in which a delivery dies is killed before it calls its hook.
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_dead_delivery_is_told_by_another_process_only_if_that_has_the_hook() {
    let told = Told::default();
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, reason, untold_at)
             select 'test', id, state, 1, 'killed', untold_at
             from (values
                 ('a', 'dead', now() - interval '1 second'), ('b', 'dead', now() + interval '50 seconds'),
                 ('c', 'recorded', now() - interval '1 second'), ('d', 'dead', null)
             ) as untold (id, state, untold_at)",
        )
        .await;
    let mut processes = Vec::new();
    for has_hook in [false, true, false, true] {
        let pool = app.database.another_pool(3).await;
        let set = |recovery: &Recovery| match has_hook {
            true => told.dead(keep(recovery)),
            false => keep(recovery),
        };
        let process = Process::new(pool, set, write_effect);
        let task = process.recover();
        if !has_hook {
            task.stop().await;
            continue;
        }
        told.until(&["a is dead: killed"]).await;
        processes.push((process, task));
    }
    for (_, task) in processes {
        task.stop().await;
    }
    told.until(&["a is dead: killed"]).await;
    let untold: Vec<String> = sqlx::query_scalar(
        "select delivery_id from idempotent_webhook.kept_deliveries
         where untold_at is not null order by delivery_id",
    )
    .fetch_all(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(untold, ["b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_a_dead_delivery_without_a_hook_is_left_for_nobody_to_tell() {
    let app = TestApp::keeping(|keep| keep.retry_delays([]), Failing::times(9).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    app.database.insert_due(1).await;
    assert_eq!(app.recovery.run_due(&app.router).await.unwrap().len(), 1);
    let untold =
        "select count(untold_at) from idempotent_webhook.kept_deliveries where state = 'dead'";
    app.database.until(ONE_DEAD).await;
    assert_eq!(app.database.count(untold).await, 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_a_process_without_a_hook_leaves_a_change_to_those_that_have_one() {
    let database = Database::new().await;
    let told = Told::default();
    insert_failing(&database, "test").await;
    for _ in 0..5 {
        look(&database, None).await;
    }
    database
        .until(
            "1 = (select count(*) from idempotent_webhook.problems where is_there and not is_told)",
        )
        .await;
    look(&database, Some(&told)).await;
    look(&database, Some(&told)).await;
    assert_eq!(told.all(), ["test: failing begun"]);
    database
        .run("delete from idempotent_webhook.kept_deliveries")
        .await;
    look(&database, None).await;
    look(&database, None).await;
    look(&database, Some(&told)).await;
    assert_eq!(told.all(), ["test: failing begun", "test: failing over"]);
    database
        .until("not exists (select from idempotent_webhook.problems)")
        .await;

    // If a problem starts and ends before any hook was called for it, hooks are never called for it.
    insert_failing(&database, "test").await;
    look(&database, None).await;
    database
        .run("delete from idempotent_webhook.kept_deliveries")
        .await;
    look(&database, None).await;
    look(&database, Some(&told)).await;
    assert_eq!(told.all().len(), 2);
    database
        .until("not exists (select from idempotent_webhook.problems)")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_six_processes_tell_a_change_once() {
    let database = Database::new().await;
    let told = Told::default();
    for is_failing in [true, false] {
        if is_failing {
            insert_failing(&database, "test").await;
        } else {
            database
                .run("delete from idempotent_webhook.kept_deliveries")
                .await;
        }
        let mut watching = Vec::new();
        for has_hook in [true, false, true, true, false, true] {
            watching.push(
                watches(&database, |recovery| match has_hook {
                    true => recovery.on_change(told.change()),
                    false => recovery,
                })
                .await,
            );
        }
        database.until(ALL_TOLD).await;
        for watching in watching {
            watching.task.stop().await;
        }
    }
    assert_eq!(told.all(), ["test: failing begun", "test: failing over"]);
}

/// The process was killed after its hook had sent the message, and before it noted that the hook had returned.
#[tokio::test(flavor = "multi_thread")]
async fn q4_what_a_killed_process_may_have_told_is_followed_by_what_is_true() {
    let database = Database::new().await;
    let told = Told::default();
    let call_and_die = |is_there: bool, is_told: bool| {
        let database = &database;
        async move {
            database
                .run(&format!(
                    "insert into idempotent_webhook.problems
                         (endpoint, problem, is_there, is_told, telling_until)
                     values ('test', 'failing', {is_there}, {is_told}, now() - interval '1 second')
                     on conflict (endpoint, problem, subject) do update
                     set is_there = {is_there}, is_told = {is_told},
                         telling_until = excluded.telling_until, tellings = problems.tellings + 1"
                ))
                .await;
        }
    };
    // The killed process has reported the start of the problem, and now nothing fails.
    call_and_die(true, false).await;
    look(&database, None).await;
    look(&database, Some(&told)).await;
    assert_eq!(told.all(), ["test: failing over"]);
    database
        .until("not exists (select from idempotent_webhook.problems)")
        .await;
    // The killed process has reported the end of the problem, and now a delivery fails again.
    call_and_die(false, true).await;
    insert_failing(&database, "test").await;
    look(&database, None).await;
    look(&database, Some(&told)).await;
    assert_eq!(told.all(), ["test: failing over", "test: failing begun"]);
    look(&database, Some(&told)).await;
    assert_eq!(told.all().len(), 2);
    database.until(ALL_TOLD).await;
}

/// A process is frozen while it calls its hook. Until it continues, another process makes all reports.
#[tokio::test(flavor = "multi_thread")]
async fn q4_a_process_that_wakes_up_tells_nothing_that_is_over() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at, last_failed_at, unreached_at)
             values ('test', 'a', 'due', 1, now() + interval '1 day', now(), now())",
        )
        .await;
    let slow = Told::default();
    let (reached, mut is_reached) = tokio::sync::mpsc::unbounded_channel();
    let (wake, woken) = mpsc::channel();
    let frozen = watches(&database, |recovery| {
        let (note, woken) = (slow.change(), Mutex::new(woken));
        recovery.on_change(move |change| {
            note(change);
            reached.send(()).unwrap();
            woken.lock().unwrap().recv().unwrap();
        })
    })
    .await;
    soon(is_reached.recv()).await.unwrap();
    assert_eq!(slow.all(), ["test: failing begun"]);

    let told = Told::default();
    look(&database, Some(&told)).await;
    // The frozen process may still report the start of `failing`, so this process does not report it yet.
    assert_eq!(told.all(), ["test: unreached begun"]);
    pass_on(&database).await;
    look(&database, Some(&told)).await;
    database
        .run("delete from idempotent_webhook.kept_deliveries")
        .await;
    look(&database, Some(&told)).await;
    let mut all = told.all();
    all[2..].sort();
    let expected = [
        "test: unreached begun",
        "test: failing begun",
        "test: failing over",
        "test: unreached over",
    ];
    assert_eq!(all, expected);
    insert_failing(&database, "test").await;
    look(&database, None).await;
    // A third process takes over the report about the new row, and is killed before it calls its hook.
    database
        .run(
            "update idempotent_webhook.problems
             set tellings = tellings + 1, telling_until = now() - interval '1 second'",
        )
        .await;

    wake.send(()).unwrap();
    // The report of the frozen process does not count, because the problem has ended and started again since.
    soon(is_reached.recv()).await.unwrap();
    wake.send(()).unwrap();
    database.until(ALL_TOLD).await;
    frozen.task.stop().await;
    assert_eq!(slow.all(), ["test: failing begun", "test: failing begun"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_a_removed_endpoint_is_over_and_begins_again_if_it_returns() {
    let database = Database::new().await;
    let told = Told::default();
    insert_failing(&database, "removed").await;
    let serve = async |ago: &str| {
        database
            .run(&format!(
                "insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
                 values ('removed', now() - interval '{ago}')
                 on conflict (endpoint) do update set served_at = excluded.served_at"
            ))
            .await;
    };
    serve("0").await;
    let watching = watches(&database, |recovery| recovery.on_change(told.change())).await;
    told.until(&["removed: failing begun"]).await;
    // The endpoint was last served nine minutes ago: a deploy can take this long.
    serve("9 minutes").await;
    look(&database, Some(&told)).await;
    assert_eq!(told.all().len(), 1);
    serve("11 minutes").await;
    // The running process has looked a second time, five seconds after its start.
    told.until(&["removed: failing begun", "removed: failing over"])
        .await;
    watching.task.stop().await;
    serve("0").await;
    look(&database, Some(&told)).await;
    let expected = [
        "removed: failing begun",
        "removed: failing over",
        "removed: failing begun",
    ];
    assert_eq!(told.all(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_each_kind_of_problem_is_found_and_over() {
    let database = Database::new().await;
    let told = Told::default();
    insert_due_of(&database, "renamed", "/", 1).await;
    insert_due_of(&database, "test", "/", 1).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set unreached_at = now(), next_attempt_at = now() + interval '1 hour'
             where endpoint = 'test';
             insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             values ('test', date_trunc('hour', now(), 'UTC'), 'request', 'processed', 1,
                 now() - interval '2 hours');
             insert into idempotent_webhook.endpoint_settings (endpoint, settings, told_at)
             values ('test', jsonb_build_object('expected_every_seconds', 3600), now())",
        )
        .await;
    let watching = watches(&database, |recovery| recovery.on_change(told.change())).await;
    let begun = [
        "test: silent begun",
        "test: unreached begun",
        // A process reports this problem only five seconds after its start.
        "renamed: unserved begun",
    ];
    told.until(&begun).await;
    watching.task.stop().await;
    database
        .run(
            "delete from idempotent_webhook.kept_deliveries;
             update idempotent_webhook.activity set last_at = now()",
        )
        .await;
    let watching = watches(&database, |recovery| recovery.on_change(told.change())).await;
    database
        .until("not exists (select from idempotent_webhook.problems)")
        .await;
    watching.task.stop().await;
    let mut over = told.all().split_off(3);
    over.sort();
    let expected = [
        "renamed: unserved over",
        "test: silent over",
        "test: unreached over",
    ];
    assert_eq!(over, expected);
}

/// A job calls `run_due` now and then, next to processes that leave recovery to the job.
#[tokio::test(flavor = "multi_thread")]
async fn q4_a_job_with_run_due_says_what_it_serves_and_tells_its_hooks() {
    let told = Told::default();
    let set = |keep: Keep| told.dead(keep.retry_delays([]));
    let app = TestApp::keeping(set, Failing::times(1).handler()).await;
    app.database.insert_due(1).await;
    let job = app.recovery.clone().on_change(told.change());
    assert_eq!(job.run_due(&app.router).await.unwrap().len(), 1);
    assert_eq!(
        told.all(),
        ["due-1 is dead: not yet", "test: failing begun"]
    );
    app.database
        .until(
            "exists (
                select from idempotent_webhook.kept_endpoints
                where endpoint = 'test' and served_at > now() - interval '1 minute'
            )",
        )
        .await;
    endpoint(&app).retry("due-1").await.unwrap();
    assert_eq!(job.run_due(&app.router).await.unwrap().len(), 1);
    assert_eq!(told.all().split_off(2), ["test: failing over"]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// As documented, a message is sent before the hook returns, and not by a task that a deploy may interrupt.
#[tokio::test]
async fn q4_a_hook_may_block_and_is_waited_for() {
    let told = Told::default();
    let sent = told.clone();
    let set = move |keep: Keep| {
        keep.on_dead(move |delivery, _| {
            let text = format!("{} is sent", delivery.id());
            tokio::runtime::Handle::current().block_on(async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                sent.0.lock().unwrap().push(text);
            });
        })
    };
    let set = |keep: Keep| set(keep.retry_delays([]));
    let app = TestApp::keeping(set, Failing::times(9).handler()).await;
    app.database.insert_due(1).await;
    let task = app.recovery.clone().spawn(app.router.clone());
    app.database.until(ONE_DEAD).await;
    task.stop().await;
    assert_eq!(told.all(), ["due-1 is sent"]);
}

pub(super) const NO_OTHERS: &str = "not exists (
    select from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
)";

/// How many blocks one search for problems (a *look*) reads from the tables of kept deliveries, with this number of
/// failing deliveries.
async fn blocks_of_a_look(failing: u32) -> i64 {
    let database = Database::new().await;
    let filling = database.another_pool(1).await;
    filling
        .execute(sqlx::raw_sql(AssertSqlSafe(format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at, first_failed_at,
                  last_failed_at, reason)
             select
                 'test', 'd' || n, case n % 3 when 0 then 'dead' else 'due' end, 1,
                 now() - interval '1 day', now(), now() - n * interval '1 second', 'no'
             from generate_series(1, {failing}) as n;
             insert into idempotent_webhook.kept_endpoints (endpoint, served_at) values ('test', now());
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select endpoint, delivery_id, 1, 'POST', '/', '', ''
             from idempotent_webhook.kept_deliveries"
        ))))
        .await
        .unwrap();
    filling
        .execute(
            "vacuum analyze idempotent_webhook.kept_deliveries, idempotent_webhook.kept_requests",
        )
        .await
        .unwrap();
    // Postgres counts what a connection has read when the connection ends.
    filling.close().await;
    database.until(NO_OTHERS).await;
    let read = "select (
            sum(heap_blks_read + heap_blks_hit) + sum(idx_blks_read + idx_blks_hit)
        )::bigint
        from pg_statio_user_tables
        where relname in ('kept_deliveries', 'kept_requests')";
    let before = database.count(read).await;
    let looking = database.another_pool(1).await;
    let look = sqlx::query(include_str!("../../../src/recovery/kept/problems.sql"))
        .bind(true)
        .bind(vec!["failing"]);
    assert_eq!(look.fetch_all(&looking).await.unwrap().len(), 1);
    looking.close().await;
    database.until(NO_OTHERS).await;
    database.count(read).await - before
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_a_look_costs_the_same_however_many_are_failing() {
    let few = blocks_of_a_look(10).await;
    let many = blocks_of_a_look(20_000).await;
    assert!(
        many < few + 50,
        "{few} blocks for few deliveries, and {many} for many"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_ten_thousand_endpoints_are_looked_at_and_written_once() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             select 'e-' || n, 'a', 'dead', 1, now() from generate_series(1, 10000) as n;
             insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
             select 'e-' || n, now() from generate_series(1, 10000) as n",
        )
        .await;
    look(&database, None).await;
    let count = "select count(*) from idempotent_webhook.problems where is_there";
    assert_eq!(database.count(count).await, 10_000);
    let written_by = "select max(xmin::text::bigint) from idempotent_webhook.problems";
    let first = database.count(written_by).await;
    look(&database, None).await;
    assert_eq!(database.count(count).await, 10_000);
    assert_eq!(database.count(written_by).await, first);
}

/// The blocks that a statement reads with these arguments, and its time.
async fn cost(database: &Database, statement: &str, types: &str, arguments: &str) -> String {
    let mut tx = database.pool.begin().await.unwrap();
    let prepare = format!("prepare measured ({types}) as {statement}");
    let explain = format!("explain (analyze, buffers) execute measured ({arguments})");
    tx.execute(sqlx::raw_sql(AssertSqlSafe(prepare)))
        .await
        .unwrap();
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explain))
        .fetch_all(&mut *tx)
        .await
        .unwrap();
    tx.execute("deallocate measured").await.unwrap();
    tx.rollback().await.unwrap();
    let line = |name: &str| {
        plan.iter()
            .find(|line| line.trim().starts_with(name))
            .cloned()
    };
    let lines = [line("Buffers:"), line("Execution Time:")];
    lines
        .map(|line| line.unwrap_or_default().trim().to_owned())
        .join(", ")
}

/// The table of processes has as many rows as in a large installation. The test prints the cost of a look, and does not
/// assert it.
#[tokio::test(flavor = "multi_thread")]
async fn q4_of_ten_thousand_endpoints_each_change_is_told_once() {
    const ENDPOINTS: usize = 10_000;
    const CHANGED: usize = 200;
    let database = Database::new().await;
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             select 'e-' || n, 'a', 'dead', 1, now() from generate_series(1, {ENDPOINTS}) as n;
             insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
             select 'e-' || n, now() from generate_series(1, {ENDPOINTS}) as n;
             insert into idempotent_webhook.problems (endpoint, problem, is_there, is_told)
             select 'e-' || n, 'failing', true, true
             from generate_series({CHANGED} + 1, {ENDPOINTS}) as n;
             insert into idempotent_webhook.processes (number, heartbeat)
             select n, 1 from generate_series(1, 10000) as n"
        ))
        .await;
    let names = "array['failing', 'probing', 'unreached', 'unserved', 'silent', 'not reconciled']";
    for (name, statement, types, arguments) in [
        (
            "problems.sql",
            include_str!("../../../src/recovery/kept/problems.sql"),
            "boolean, text[]",
            &*format!("true, {names}"),
        ),
        (
            "tell_change.sql",
            include_str!("../../../src/recovery/kept/tell_change.sql"),
            "text[], interval, text",
            &*format!("{names}, '1 minute', null"),
        ),
        (
            "heartbeat.sql",
            include_str!("../../../src/recovery/kept/heartbeat.sql"),
            "bigint[], bigint[], bigint",
            "array[10001], array[10002], 1",
        ),
    ] {
        println!(
            "{name}: {}",
            cost(&database, statement, types, arguments).await
        );
    }

    let told = Told::default();
    for (is_there, word) in [(true, "begun"), (false, "over")] {
        let began = std::time::Instant::now();
        let mut watching = Vec::new();
        for has_hook in [true, true, false] {
            watching.push(
                watches(&database, |recovery| match has_hook {
                    true => recovery.on_change(told.change()),
                    false => recovery,
                })
                .await,
            );
        }
        let all_told = format!(
            "{ALL_TOLD} and {} = (select count(*) from idempotent_webhook.problems where is_there)",
            if is_there {
                ENDPOINTS
            } else {
                ENDPOINTS - CHANGED
            },
        );
        database.until(&all_told).await;
        println!(
            "{CHANGED} changes told by two processes in {:.1?}",
            began.elapsed()
        );
        for watching in watching {
            watching.task.stop().await;
        }
        let mut all = told.all();
        all.retain(|told| told.ends_with(word));
        all.sort_unstable();
        let mut expected: Vec<String> = (1..=CHANGED)
            .map(|number| format!("e-{number}: failing {word}"))
            .collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
        database
            .run(&format!(
                "delete from idempotent_webhook.kept_deliveries
                 where endpoint in (select 'e-' || n from generate_series(1, {CHANGED}) as n)"
            ))
            .await;
    }
    assert_eq!(told.all().len(), 2 * CHANGED);
}

#[tokio::test]
async fn q4_a_breaker_that_opens_is_logged_once_over_all_processes() {
    let database = Database::new().await;
    let log = logged(async {
        let mut running = Vec::new();
        for _ in 0..2 {
            running.push(watches(&database, |recovery| recovery).await);
        }
        database
            .run(
                "insert into idempotent_webhook.kept_endpoints (endpoint, probe_at)
                 values ('test', now()) on conflict (endpoint) do update set probe_at = now();
                 update idempotent_webhook.turns set next_at = '-infinity' where task = 'problems'",
            )
            .await;
        until_logged("webhook problem").await;
        for watching in running {
            watching.task.stop().await;
        }
    })
    .await;
    let of_recovery = |line: &&str| line.contains("WARN") && line.contains("::recovery::");
    assert_eq!(log.lines().filter(of_recovery).count(), 1, "{log}");
    assert!(log.contains("problem=\"probing\""), "{log}");
}

/// Rows can be missing after a restore without one of the tables, or if tables were emptied for a test.
#[tokio::test]
async fn q4_problems_are_found_whatever_rows_are_gone() {
    let database = Database::new().await;
    look(&database, None).await;
    for lose in [
        "delete from idempotent_webhook.turns",
        "do $$ begin
            execute (
                select 'truncate ' || string_agg(format('idempotent_webhook.%I', tablename), ', ')
                from pg_tables
                where schemaname = 'idempotent_webhook' and tablename <> 'migrations'
            );
         end $$",
    ] {
        database.run(lose).await;
        insert_failing(&database, "test").await;
        let told = Told::default();
        look(&database, Some(&told)).await;
        told.until(&["test: failing begun"]).await;
        // The search for problems has created the row that schedules the next search.
        assert_eq!(
            database
                .count("select count(*) from idempotent_webhook.turns where task = 'problems'")
                .await,
            1
        );
        pass_on(&database).await;
        database
            .run("delete from idempotent_webhook.kept_deliveries")
            .await;
        look(&database, Some(&told)).await;
        told.until(&["test: failing begun", "test: failing over"])
            .await;
    }
}
