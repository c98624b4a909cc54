//! Guarantee Deploy 1: in a database that belongs to another environment, a process runs no kept delivery, and
//! acknowledges only deliveries that it has committed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::reconcile::{EventPage, EventSource, PageQuery, SourceError};
use idempotent_webhook::recovery::{RecoveryTask, adopt};
use idempotent_webhook::subscriptions::Subscriptions;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, Reconcile, Recovery,
    Retention, presets,
};
use provider_apis::{Api, KEY, at};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};

use crate::support::{
    Database, Failing, NOTHING_KEPT, SOON, answer, assert_rows, gated, github, github_delivery,
    insert_due_of, insert_effect, keep, keep_accepted, keep_all, logged, now, recovery, secret,
    send, soon, spawn_send, stripe, stripe_event, until_logged, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A process of the environment `staging` has reported that it uses the database.
const STAGING_IS_SEEN: &str =
    "exists (select from idempotent_webhook.other_environments where name = 'staging')";

/// Counts the calls of everything that a process may do outside of requests.
#[derive(Clone, Default)]
struct Calls {
    hooks: Arc<AtomicU32>,
    lists: Arc<AtomicU32>,
}

impl Calls {
    fn all(&self) -> [u32; 2] {
        [&self.hooks, &self.lists].map(|calls| calls.load(Ordering::Relaxed))
    }
}

impl EventSource for Calls {
    fn name(&self) -> String {
        "list".to_owned()
    }

    async fn page(&self, _: &PageQuery) -> Result<EventPage, SourceError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        Ok(EventPage::new([], None))
    }
}

struct Process {
    router: Router,
    recovery: Recovery,
    calls: Calls,
}

/// A process with every kind of background work.
fn process(
    pool: PgPool,
    environment: Option<&str>,
    way: impl FnOnce(&Recovery) -> Keep,
) -> Process {
    let calls = Calls::default();
    let (changes, deaths) = (calls.hooks.clone(), calls.hooks.clone());
    let mut recovery = recovery(&pool).on_change(move |_| {
        changes.fetch_add(1, Ordering::Relaxed);
    });
    let keep = way(&recovery).on_dead(move |_, _| {
        deaths.fetch_add(1, Ordering::Relaxed);
    });
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::stripe(secret())).keep(keep);
    let list = Reconcile::new(&layer, calls.clone(), "/").unwrap();
    recovery = recovery
        .with(Retention::new(pool, DAY).every(SOON))
        .with(list.since(SystemTime::now() - DAY).every(SOON));
    if let Some(environment) = environment {
        recovery = recovery.environment(environment);
    }
    Process {
        router: Router::new().route("/", post(write_effect).layer(layer)),
        recovery,
        calls,
    }
}

impl Process {
    fn spawn(&self) -> RecoveryTask {
        self.recovery.clone().spawn(self.router.clone())
    }
}

/// The database of production. It has due deliveries, a dead delivery that no hook was called for, and an old delivery.
async fn production() -> Database {
    let database = Database::new().await;
    let process = process(database.another_pool(5).await, Some("production"), keep);
    // This call of `run_due` stores the environment's name in the database.
    assert_eq!(
        process
            .recovery
            .run_due(&process.router)
            .await
            .unwrap()
            .len(),
        0
    );
    fill(&database.pool).await;
    database
}

async fn fill(pool: &PgPool) {
    let sql = "
        insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts, next_attempt_at)
        select 'test', 'due-' || n, 'due', 1, now() from generate_series(1, 3) as n;
        insert into idempotent_webhook.kept_requests (endpoint, delivery_id, format, method, uri, headers, body)
        select 'test', 'due-' || n, 1, 'POST', '/', '', '{}' from generate_series(1, 3) as n;
        insert into idempotent_webhook.kept_deliveries
            (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, died_at, untold_at, reason)
        values ('test', 'dead', 'dead', 3, now(), now(), now(), now() - interval '1 hour', 'it broke');
        insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
        values ('test', 'old', now() - interval '90 days');
        -- Deletes the rows that the process wrote when it named the database.
        delete from idempotent_webhook.turns;
        delete from idempotent_webhook.kept_endpoints;
        delete from idempotent_webhook.redelivery_windows;
        insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window) values ('test', '1 day')
    ";
    pool.execute(sqlx::raw_sql(sql)).await.unwrap();
}

/// The database is as [`fill`] has left it.
const UNTOUCHED: &str = "
    (select count(*) from idempotent_webhook.kept_deliveries where state = 'due' and attempts = 1 and taken_by is null) = 3
    and (select untold_at < now() - interval '59 minutes' from idempotent_webhook.kept_deliveries where state = 'dead')
    and (select count(*) from idempotent_webhook.deliveries where delivery_id = 'old') = 1
    and not exists (select from idempotent_webhook.problems)
    and not exists (select from idempotent_webhook.reconciliations)
    and not exists (select from idempotent_webhook.turns)
    and not exists (select from idempotent_webhook.kept_endpoints where served_at is not null)
    and not exists (select from effects)
";

/// Asserts that the process does nothing outside of requests for a while.
async fn does_nothing(database: &Database, process: &Process) {
    let task = process.spawn();
    let seen = "exists (select from idempotent_webhook.other_environments)";
    database.until(seen).await;
    // The due deliveries would run in a fraction of this time.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        database
            .count(&format!("select count(*) where {UNTOUCHED}"))
            .await,
        1
    );
    assert_eq!(process.calls.all(), [0, 0]);
    assert!(task.stop().await.is_empty());
    let error = process.recovery.run_due(&process.router).await.unwrap_err();
    assert!(matches!(error, sqlx::Error::Configuration(_)), "{error}");
    assert_eq!(
        database
            .count(&format!("select count(*) where {UNTOUCHED}"))
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_restored_copy_does_nothing_until_it_is_adopted_and_resumed() {
    let original = production().await;
    let copy = original.restored().await;
    for environment in [Some("staging"), None] {
        let process = process(copy.another_pool(5).await, environment, keep);
        does_nothing(&copy, &process).await;
    }

    assert_eq!(adopt(&copy.pool, "staging").await.unwrap(), ["test"]);
    assert_eq!(adopt(&copy.pool, "staging").await.unwrap(), [""; 0]);
    let recorded: (String, Vec<String>, String, bool) = sqlx::query_as(
        "select action, endpoints, selection, ended_at is not null
         from idempotent_webhook.operator_actions",
    )
    .fetch_one(&copy.pool)
    .await
    .unwrap();
    let words = "staging, before that production".to_owned();
    assert_eq!(recorded, ("adopt".into(), vec!["test".into()], words, true));
    let process = process(copy.another_pool(5).await, Some("staging"), keep);
    assert_eq!(
        process
            .recovery
            .run_due(&process.router)
            .await
            .unwrap()
            .len(),
        0
    );
    let task = process.spawn();
    copy.until("not exists (select from idempotent_webhook.deliveries where delivery_id = 'old')")
        .await;
    assert_rows!(copy, claims: 0, effects: 0);
    let endpoint = Endpoint::new(copy.pool.clone(), "test");
    endpoint.discard("due-1").await.unwrap();
    endpoint.resume().await.unwrap();
    copy.until("(select count(*) from effects) = 2").await;
    task.stop().await;
    assert_rows!(copy, claims: 2, effects: 2);
    assert!(process.calls.all()[0] > 0);

    // Meanwhile, production continues.
    let process = self::process(original.another_pool(5).await, Some("production"), keep);
    let task = process.spawn();
    original.until("(select count(*) from effects) = 3").await;
    task.stop().await;
    assert!(process.calls.all().iter().all(|calls| *calls > 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_copy_of_the_files_does_nothing() {
    let server = ThrowawayPostgres::start(Durability::Lossy).await.unwrap();
    let of = |server: &ThrowawayPostgres| {
        PgPoolOptions::new()
            .max_connections(5)
            .connect_lazy_with(server.options("postgres"))
    };
    let pool = of(&server);
    idempotent_webhook::migrate(&pool).await.unwrap();
    pool.execute("create table effects (delivery_id text)")
        .await
        .unwrap();
    let original = process(pool.clone(), Some("production"), keep);
    original.recovery.run_due(&original.router).await.unwrap();
    fill(&pool).await;
    pool.execute("checkpoint").await.unwrap();
    pool.close().await;
    server.crash().unwrap();
    let copy = server.start_copy(Durability::Lossy).await.unwrap();

    let pool = of(&copy);
    let staging = process(pool.clone(), Some("staging"), keep);
    let task = staging.spawn();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let untouched = AssertSqlSafe(format!("select {UNTOUCHED}"));
    let untouched: bool = sqlx::query_scalar(untouched)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(untouched);
    assert_eq!(staging.calls.all(), [0, 0]);
    task.stop().await;
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_wrong_name_in_all_processes_is_reported_and_corrected() {
    let database = production().await;
    let wrong = process(database.another_pool(5).await, Some("prod"), keep);
    does_nothing(&database, &wrong).await;
    // Either the variable is corrected, or the database adopts the new name.
    assert_eq!(adopt(&database.pool, "prod").await.unwrap(), ["test"]);
    let task = wrong.spawn();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(database.rows().await.effects, 0);
    Endpoint::new(database.pool.clone(), "test")
        .resume()
        .await
        .unwrap();
    database.until("(select count(*) from effects) = 3").await;
    task.stop().await;
}

/// If the processes of one deploy have two different names, the first name wins, and processes with the other name do
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_the_first_of_two_names_in_one_deploy_wins() {
    for _ in 0..5 {
        let database = Database::new().await;
        fill(&database.pool).await;
        let names = ["blue", "green"];
        let mut processes = Vec::new();
        for name in names {
            processes.push(process(database.another_pool(5).await, Some(name), keep));
        }
        let tasks: Vec<_> = processes.iter().map(Process::spawn).collect();
        database.until("(select count(*) from effects) = 3").await;
        database
            .until("exists (select from idempotent_webhook.other_environments)")
            .await;
        let (won, lost): (String, String) = sqlx::query_as(
            "select environment.name, other.name
             from idempotent_webhook.environment, idempotent_webhook.other_environments as other",
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        assert!(won != lost && names.contains(&&*won) && names.contains(&&*lost));
        for task in tasks {
            task.stop().await;
        }
        for (process, name) in processes.iter().zip(names) {
            if name == lost {
                assert_eq!(process.calls.all(), [0, 0], "{name}");
            }
        }
    }
}

/// While the database has no name, processes without an environment run kept deliveries as usual. This changes once a
/// process names the database.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_database_without_a_name_runs_for_processes_without_one() {
    let database = Database::new().await;
    fill(&database.pool).await;
    let unnamed = process(database.another_pool(5).await, None, keep);
    let task = unnamed.spawn();
    database.until("(select count(*) from effects) = 3").await;
    assert_eq!(
        database
            .count("select count(*) from idempotent_webhook.environment")
            .await,
        0
    );
    // A rolling deploy introduces a name. From then on, the old processes run nothing.
    let named = process(database.another_pool(5).await, Some("production"), keep);
    named.recovery.run_due(&named.router).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    insert_due_of(&database, "test", "/", 3).await;
    database
        .run("update idempotent_webhook.kept_deliveries set next_attempt_at = now() where state = 'due'")
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let due = "select count(*) from idempotent_webhook.kept_deliveries where state = 'due' and attempts = 1";
    assert_eq!(database.count(due).await, 3);
    task.stop().await;
}

#[tokio::test]
async fn deploy_1_this_one_thing_is_reported_at_error() {
    let database = production().await;
    let mut log = String::new();
    for (environment, expected) in [
        (
            Some("staging"),
            r#"environment="staging" environment_of_database="production""#,
        ),
        (
            None,
            r#"environment="(none)" environment_of_database="production""#,
        ),
    ] {
        let process = process(database.another_pool(5).await, environment, keep);
        log = logged(async {
            let task = process.spawn();
            until_logged("ERROR").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            task.stop().await;
        })
        .await;
        let errors: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
        assert_eq!(errors.len(), 1, "{log}");
        assert!(errors[0].contains(expected), "{log}");
        assert!(!log.contains("WARN"), "{log}");
    }
    drop(log);
    // A retention task that is spawned on its own has no environment.
    let log = logged(async {
        let retention = Retention::new(database.another_pool(2).await, DAY)
            .every(SOON)
            .spawn();
        until_logged("ERROR").await;
        assert_eq!(retention.stop().await.deliveries, 0);
    })
    .await;
    assert!(log.contains("by `Recovery::with`"), "{log}");
}

/// The process does not spawn its recovery handle. Its first request that is handled before the answer reports the
/// mismatch, or names a database that has no name.
#[tokio::test]
async fn deploy_1_a_process_without_a_watch_reports_it_and_names_a_database() {
    let send_to = async |pool: &PgPool, environment: &str, id: &str| {
        let recovery = Recovery::elsewhere(pool.clone()).environment(environment);
        let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
            .keep(keep_accepted(&recovery));
        let router = Router::new().route("/", post(write_effect).layer(layer));
        send(&router, github(id, "{}")).await.outcome
    };
    let database = production().await;
    let log = logged(async {
        assert_eq!(send_to(&database.pool, "staging", "a").await, "processed");
        until_logged("ERROR").await;
    })
    .await;
    assert!(
        log.contains(r#"environment_of_database="production""#),
        "{log}"
    );

    let database = Database::new().await;
    assert_eq!(
        send_to(&database.pool, "production", "a").await,
        "processed"
    );
    database
        .until("exists (select from idempotent_webhook.environment where name = 'production')")
        .await;
    assert_eq!(send_to(&database.pool, "production", "b").await, "accepted");
}

/// No provider's lists or subscriptions are read, regardless of whether the handle or the layer gives the environment.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_no_subscription_is_read() {
    let database = production().await;
    let (api, address) = Api::start("github").await;
    let pool = database.another_pool(5).await;
    let of = |layer: &IdempotentWebhook| {
        let source = provider_apis::subscriptions("github", at(address), KEY);
        Subscriptions::new(layer, source, "https://example.com/webhooks")
            .unwrap()
            .every(Duration::from_secs(1))
    };
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let recovery = recovery(&pool).environment("staging");
    let joined = layer.clone().join(&recovery);
    let by_itself = of(&joined).spawn();
    let task = recovery.clone().with(of(&layer)).spawn(Router::new());
    database.until(STAGING_IS_SEEN).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(api.requests().len(), 0);
    // If the database belongs to the environment of the process, the provider's API is called.
    adopt(&database.pool, "staging").await.unwrap();
    by_itself.stop().await;
    let again = of(&joined).spawn();
    soon(async {
        while api.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    again.stop().await;
    task.stop().await;
}

/// The first request comes before the process has looked at the database's environment.
#[tokio::test]
async fn deploy_1_accepted_is_handled_before_it_is_answered_elsewhere() {
    let database = production().await;
    for environment in [Some("staging"), None] {
        let pool = database.another_pool(5).await;
        let recovery = recovery(&pool);
        if let Some(name) = environment {
            let _ = recovery.clone().environment(name);
        }
        let (mut gate, gated) = gated();
        let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
            .keep(keep_accepted(&recovery));
        let router = Router::new().route("/", post(gated).layer(layer));
        let id = format!("to-{environment:?}");
        let sent = spawn_send(&router, github(&id, "{}"));
        gate.reached().await;
        assert!(!sent.is_finished());
        gate.open();
        assert_eq!(soon(sent).await.unwrap(), answer(200, "processed", ""));
        let kept = format!(
            "select count(*) from idempotent_webhook.kept_deliveries where delivery_id = '{id}'"
        );
        assert_eq!(database.count(&kept).await, 0);
    }
    assert_rows!(database, claims: 3, effects: 2);
}

/// A process must not remember the environment of its database, because another database may take its place at any
/// moment.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_database_that_is_exchanged_under_a_process_is_left_alone_at_once() {
    let database = production().await;
    let process = process(
        database.another_pool(5).await,
        Some("production"),
        keep_accepted,
    );
    let task = process.spawn();
    database.until("(select count(*) from effects) = 3").await;
    let sent = send(&process.router, stripe(stripe_event("a"), now())).await;
    assert_eq!(sent, answer(200, "accepted", ""));
    database.until("(select count(*) from effects) = 4").await;

    database
        .run(
            "update idempotent_webhook.environment set name = 'elsewhere';
             insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('test', 'late', 'due', 1, now());
             insert into idempotent_webhook.kept_requests (endpoint, delivery_id, format, method, uri, headers, body)
             values ('test', 'late', 1, 'POST', '/', '', '{}')",
        )
        .await;
    for id in ["b", "late"] {
        let sent = send(&process.router, stripe(stripe_event(id), now())).await;
        assert_eq!(sent, answer(200, "processed", "done"), "{id}");
    }
    insert_due_of(&database, "test", "/", 3).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(database.rows().await.effects, 6);
    let due = "select count(*) from idempotent_webhook.kept_deliveries where state = 'due'";
    assert_eq!(database.count(due).await, 3);
    task.stop().await;
}

/// In the database of another environment, a failure is answered as a failure. It changes nothing that was kept before.
#[tokio::test]
async fn deploy_1_no_failure_is_acknowledged_elsewhere() {
    let ways: [fn(&Recovery) -> Keep; 3] = [
        |recovery| keep(recovery).acknowledge(),
        |recovery| keep_all(recovery).acknowledge(),
        |recovery| keep_accepted(recovery).acknowledge(),
    ];
    for way in ways {
        let database = production().await;
        let pool = database.another_pool(5).await;
        let send_to = async |environment: &str, id: &str| {
            let recovery = recovery(&pool).environment(environment);
            let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
                .keep(way(&recovery));
            let handler = Failing::times(9).handler();
            let router = Router::new().route("/", post(handler).layer(layer));
            let sent = send(&router, github(id, "{}")).await;
            (sent.status, sent.outcome)
        };
        for id in ["new", "new", "due-1"] {
            assert_eq!(send_to("staging", id).await, (500, "kept".to_owned()));
        }
        let (status, outcome) = send_to("production", "new").await;
        assert!(
            status == 200 && ["kept", "accepted"].contains(&&*outcome),
            "{outcome}"
        );
        assert_rows!(database, claims: 1, effects: 0);
    }
}

#[tokio::test]
async fn deploy_1_a_full_quota_refuses_nothing_elsewhere() {
    let database = production().await;
    let pool = database.another_pool(5).await;
    let recovery = recovery(&pool).environment("staging");
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
        .keep(keep_accepted(&recovery).quota(1, 1));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let sent = send(&router, github("new", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
}

/// Processes start and are killed again and again. Their first requests come before anything else, and their handlers
/// fail and hang. Each delivery that was answered with a 2xx is processed, although no process runs kept deliveries.
#[test]
fn deploy_1_nothing_is_acknowledged_and_left_while_processes_are_killed() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    };
    let own = runtime();
    let database = own.block_on(production());
    let options = database.options();
    let acknowledged = Arc::<Mutex<BTreeSet<String>>>::default();
    let mut sent = 0;
    for round in 0..24_u32 {
        let process = runtime();
        let environment = ["staging", "prod", ""][round as usize % 3];
        process.block_on(async {
            let pool = PgPoolOptions::new()
                .max_connections(5)
                .connect_lazy_with(options.clone());
            let recovery = recovery(&pool);
            if !environment.is_empty() {
                let _ = recovery.clone().environment(environment);
            }
            let way = match round % 4 {
                0 | 1 => keep_accepted(&recovery),
                2 => keep_all(&recovery),
                _ => keep(&recovery),
            };
            let handler = async |mut tx: DedupeTx, delivery: Delivery| {
                insert_effect(&mut tx, &delivery).await?;
                let number: u64 = delivery.id().as_str().parse().unwrap();
                tokio::time::sleep(Duration::from_millis(number % 7 * 5)).await;
                match number % 3 {
                    0 => Err(HandlerError::new("it fails")),
                    _ => Ok(StatusCode::OK),
                }
            };
            let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
                .keep(way.acknowledge());
            let router = Router::new().route("/", post(handler).layer(layer));
            let task = recovery.clone().spawn(router.clone());
            let answered = Arc::new(AtomicU32::new(0));
            for _ in 0..12 {
                let (id, router) = (sent.to_string(), router.clone());
                sent += 1;
                let (acknowledged, answered) = (acknowledged.clone(), answered.clone());
                tokio::spawn(async move {
                    let request = github_delivery().id(&id).request();
                    let answer = send(&router, request).await;
                    if (200..300).contains(&answer.status) {
                        acknowledged.lock().unwrap().insert(id);
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                });
            }
            // The process is killed in the middle of its work. None of this work continues.
            soon(async {
                while answered.load(Ordering::Relaxed) < round % 10 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
            .await;
            drop(task);
        });
        process.shutdown_background();
    }
    own.block_on(async {
        // Postgres has finished the work of the killed processes.
        database
            .until(
                "not exists (
                    select from pg_stat_activity
                    where datname = current_database() and backend_xid is not null
                )",
            )
            .await;
        let acknowledged: Vec<String> = acknowledged.lock().unwrap().iter().cloned().collect();
        assert!(acknowledged.len() > 20, "{}", acknowledged.len());
        let left: Vec<String> = sqlx::query_scalar(
            "select id from unnest($1::text[]) as id
             where (select count(*) from idempotent_webhook.deliveries where delivery_id = id) <> 1
                 or (select count(*) from effects where delivery_id = id) <> 1",
        )
        .bind(&acknowledged)
        .fetch_all(&database.pool)
        .await
        .unwrap();
        assert_eq!(left, [""; 0]);
        database
            .until(&format!(
                "(select count(*) from idempotent_webhook.kept_deliveries where delivery_id like 'due-%' and attempts = 1) = 3
                 and not ({NOTHING_KEPT})"
            ))
            .await;
    });
}

#[tokio::test]
async fn deploy_1_what_dies_at_its_first_attempt_is_told_by_a_process_of_the_environment() {
    let database = production().await;
    database
        .run("update idempotent_webhook.kept_deliveries set untold_at = null")
        .await;
    let send_to = async |environment: &str, id: &str| {
        let pool = database.another_pool(3).await;
        let told = Arc::new(AtomicU32::new(0));
        let calls = told.clone();
        let recovery = recovery(&pool).environment(environment);
        let keep = keep(&recovery).retry_delays([]).on_dead(move |_, _| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        let layer = IdempotentWebhook::new(pool, "test", presets::github(secret())).keep(keep);
        let handler = Failing::times(1).handler();
        let router = Router::new().route("/", post(handler).layer(layer.clone()));
        assert_eq!(send(&router, github(id, "{}")).await.outcome, "kept");
        layer.drained().await;
        told.load(Ordering::Relaxed)
    };
    assert_eq!(send_to("staging", "a").await, 0);
    let untold = "exists (select from idempotent_webhook.kept_deliveries
        where delivery_id = 'a' and state = 'dead' and untold_at is not null)";
    database.until(untold).await;
    assert_eq!(send_to("production", "b").await, 1);
}

/// An adoption sets the name and pauses kept deliveries in one transaction, so no process runs any of them in between.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_nothing_runs_between_the_adoption_and_its_pauses() {
    for _ in 0..5 {
        let database = production().await;
        let process = process(database.another_pool(5).await, Some("staging"), keep);
        let task = process.spawn();
        database.until(STAGING_IS_SEEN).await;
        assert_eq!(adopt(&database.pool, "staging").await.unwrap(), ["test"]);
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(database.rows().await.effects, 0);
        task.stop().await;
    }
}

#[tokio::test]
async fn deploy_1_a_name_that_is_none_is_refused() {
    let database = Database::new().await;
    for name in ["", "a b", "a\nb", &"x".repeat(64)] {
        let refused = adopt(&database.pool, name).await.unwrap_err();
        assert!(
            matches!(refused, sqlx::Error::Configuration(_)),
            "{refused}"
        );
        let recovery = Recovery::new(database.pool.clone());
        let set = std::panic::AssertUnwindSafe(|| recovery.environment(name));
        assert!(std::panic::catch_unwind(set).is_err(), "{name:?}");
    }
    assert_eq!(
        database
            .count("select count(*) from idempotent_webhook.environment")
            .await,
        0
    );
}
