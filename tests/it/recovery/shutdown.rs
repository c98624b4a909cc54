//! Guarantee B4: a process that is asked to stop does so within a limit, regardless of what Postgres does. Its
//! deliveries are done, or given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{IdempotentWebhook, Keep, Recovery, Retention, presets};
use metrics_exporter_prometheus::PrometheusBuilder;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::support::{
    Database, Link, NONE_TAKEN, NOTHING_KEPT, Network, ONE_WAITS_FOR_A_LOCK, Process, TestApp,
    answer, assert_rows, gate, gated, github, github_delivery, keep, keep_accepted, let_pass, lock,
    logged, recover, recovery, secret, send, soon, spawn_send, until_logged, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const NUMBERS: &str = "select count(*) from idempotent_webhook.processes";

/// Twice the ten seconds that the guide states.
async fn within_the_limit<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work)
        .await
        .expect("the work finishes within its limit")
}

/// A pool on a network that fails when the test says so.
async fn pool_on_a_network(database: &Database) -> (Network, PgPool) {
    let (network, options) = Network::of(database).await;
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .connect_lazy_with(options);
    (network, pool)
}

fn layer_of(pool: &PgPool, keep: Keep) -> IdempotentWebhook {
    IdempotentWebhook::new(pool.clone(), "test", presets::github(secret())).keep(keep)
}

/// Inserts a delivery whose last attempts, this many in a row, were unfinished.
async fn insert_unfinished(database: &Database, id: &str, unfinished: u32) {
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, takes, unfinished, next_attempt_at)
             values ('test', '{id}', 'due', {unfinished}, {unfinished}, {unfinished}, now());
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('test', '{id}', 1, 'POST', '/', '', '{{}}')"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b4_a_process_in_which_nothing_runs_stops_within_its_limit_whatever_postgres_does() {
    let mut stopped = Vec::new();
    for link in [Link::Silent, Link::Refusing] {
        for outage in [0, 100, 2500, 7000].map(Duration::from_millis) {
            stopped.push(tokio::spawn(async move {
                let database = Database::new().await;
                let (network, pool) = pool_on_a_network(&database).await;
                let task = Process::new(pool, keep, write_effect).recover();
                let is_there = "(select count(*) = 2 from idempotent_webhook.processes)";
                database.until(is_there).await;
                network.set(link);
                tokio::time::sleep(outage).await;
                within_the_limit(task.stop()).await;
            }));
        }
    }
    for stopped in stopped {
        stopped.await.unwrap();
    }
}

/// When the process is asked to stop, the statement that takes a delivery is running, and its answer never comes.
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_process_that_takes_a_delivery_while_postgres_falls_silent_stops_within_its_limit() {
    let database = Database::new().await;
    database.insert_due(1).await;
    database
        .run(
            "create function dawdle() returns trigger language plpgsql as
                 'begin perform pg_sleep(1); return new; end';
             create trigger dawdle before update on idempotent_webhook.kept_deliveries
                 for each row execute function dawdle()",
        )
        .await;
    let (network, pool) = pool_on_a_network(&database).await;
    let task = Process::new(pool, keep, write_effect).recover();
    database
        .until(
            "exists (
                select from pg_stat_activity
                where datname = current_database() and wait_event = 'PgSleep'
            )",
        )
        .await;
    network.set(Link::Silent);
    within_the_limit(task.stop()).await;
    assert_rows!(database, claims: 0, effects: 0);
}

/// The process takes a delivery, and the answer of Postgres comes only after the signal to stop. This happens in a
/// deploy while there is a backlog.
#[tokio::test(flavor = "multi_thread")]
async fn b4_what_is_taken_while_a_process_is_asked_to_stop_is_given_back() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "create function dawdle() returns trigger language plpgsql as
                 'begin perform pg_sleep(0.5); return new; end';
             create trigger dawdle before update on idempotent_webhook.kept_deliveries
                 for each row when (old.taken_by is null and new.taken_by is not null)
                 execute function dawdle()",
        )
        .await;
    let task = recover(&app);
    app.database
        .until(
            "exists (
                select from pg_stat_activity
                where datname = current_database() and wait_event = 'PgSleep'
            )",
        )
        .await;
    within_the_limit(task.stop()).await;
    assert_eq!(app.runs(), 0);
    app.database.until(NONE_TAKEN).await;
    let kept = app.database.kept().await;
    assert_eq!((&*kept.state, kept.attempts, kept.retries), ("due", 1, 0));
    assert_eq!(app.database.count(NUMBERS).await, 0);
    // The delivery loses no attempt, and runs at once.
    let next = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    next.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Deliveries with unfinished attempts wait to run alone, one after the other. A stop does not wait for them, because
/// each may take as long as its handler.
#[tokio::test(flavor = "multi_thread")]
async fn b4_attempts_that_wait_to_run_alone_are_given_back() {
    let (mut gate, handler) = gated();
    let app = TestApp::keeping(|keep| keep, handler).await;
    for id in ["a", "b"] {
        insert_unfinished(&app.database, id, 2).await;
    }
    let task = recover(&app);
    gate.reached().await;
    app.database
        .until(
            "(select count(*) = 2 from idempotent_webhook.kept_deliveries
              where taken_by is not null)",
        )
        .await;
    let stopping = tokio::spawn(task.stop());
    app.database
        .until(
            "(select count(*) = 1 from idempotent_webhook.kept_deliveries
              where taken_by is null and attempts = 2 and unfinished = 2)",
        )
        .await;
    assert!(!stopping.is_finished(), "an attempt is under way");
    gate.open();
    within_the_limit(stopping).await.unwrap();
    assert_eq!(app.runs(), 1);
    app.database.until(NONE_TAKEN).await;
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(app.database.count(NUMBERS).await, 0);
}

/// A process takes deliveries under a number. Once the process has given up its number, no other process takes it for
/// dead or waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_drained_layer_gives_up_the_number_that_its_last_request_has_held() {
    for is_spawned in [true, false] {
        let database = Database::new().await;
        let (mut gate, handler) = gated();
        let recovery = match is_spawned {
            true => recovery(&database.pool),
            false => Recovery::elsewhere(database.pool.clone()),
        };
        let layer = layer_of(&database.pool, Keep::all(&recovery));
        let router: Router = Router::new().route("/", post(handler).layer(layer.clone()));
        let task = is_spawned.then(|| recovery.spawn(router.clone()));
        let sent = spawn_send(&router, github("a", "{}"));
        gate.reached().await;
        let ending = match task {
            Some(task) => tokio::spawn(async move { assert!(task.stop().await.is_empty()) }),
            None => tokio::spawn(layer.drained()),
        };
        if is_spawned {
            // The process keeps its number for as long as the request runs.
            database.until(&format!("({NUMBERS}) = 1")).await;
        }
        gate.open();
        assert_eq!(soon(sent).await.unwrap(), answer(200, "processed", ""));
        soon(ending).await.unwrap();
        assert_eq!(database.count(NUMBERS).await, 0, "spawned: {is_spawned}");
        assert_rows!(database, claims: 1, effects: 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b4_an_attempt_that_is_under_way_when_postgres_goes_away_is_waited_for_and_runs_later() {
    for link in [Link::Silent, Link::Refusing] {
        let database = Database::new().await;
        database.insert_due(1).await;
        let (network, pool) = pool_on_a_network(&database).await;
        let (mut gate, handler) = gated();
        // The layer tries for a minute to write the result of the attempt.
        let recovery = recovery(&pool).stop_limit(Duration::from_secs(10));
        let layer = layer_of(&pool, keep(&recovery)).database_timeout(Duration::from_secs(1));
        let router: Router = Router::new().route("/", post(handler).layer(layer));
        let task = recovery.spawn(router);
        gate.reached().await;
        network.set(link);
        let stopping = tokio::spawn(task.stop());
        gate.open();
        within_the_limit(stopping).await.unwrap();
        assert_rows!(database, claims: 0, effects: 0, "{link:?}");
        // Postgres notices that the host is gone.
        network.set(Link::Refusing);
        let next = Process::new(database.another_pool(5).await, keep, write_effect);
        let next = next.recover();
        within_the_limit(database.until(NOTHING_KEPT)).await;
        soon(next.stop()).await;
        assert_rows!(database, claims: 1, effects: 1, "{link:?}");
    }
}

/// Retention may be in a batch that waits for a lock, or its process may have just started. It stops within its limit
/// in both cases.
#[tokio::test(flavor = "multi_thread")]
async fn b4_retention_stops_within_its_limit_whatever_postgres_does() {
    let mut stopped = Vec::new();
    for link in [Link::Silent, Link::Refusing] {
        for outage in [0, 1500].map(Duration::from_millis) {
            stopped.push(tokio::spawn(async move {
                let database = Database::new().await;
                let (network, pool) = pool_on_a_network(&database).await;
                database
                    .run(
                        "create sequence rounds minvalue 0;
                         create function count_round() returns trigger language plpgsql as
                             'begin perform nextval(''rounds''); return null; end';
                         create trigger count_round after insert
                             on idempotent_webhook.turns
                             for each row when (new.task = 'retention') execute function count_round()",
                    )
                    .await;
                let retention = Retention::new(pool, 45 * DAY).every(Duration::from_millis(100));
                let task = retention.spawn();
                database.until("(select is_called from rounds)").await;
                network.set(link);
                tokio::time::sleep(outage).await;
                within_the_limit(task.stop()).await;
            }));
        }
    }
    for stopped in stopped {
        stopped.await.unwrap();
    }
}

/// The layer writes its counts every five seconds. Here, the statement that writes them is still under way when the
/// layer is drained.
#[tokio::test(flavor = "multi_thread")]
async fn b4_a_drained_layer_has_written_all_that_it_has_counted() {
    let counted = "(select coalesce(sum(count), 0) from idempotent_webhook.activity
                    where source = 'request')";
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .database_timeout(Duration::from_secs(20));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    let held = lock(&database, "activity").await;
    for n in 0..10 {
        send(&router, github(&n.to_string(), "{}")).await;
    }
    database.until(ONE_WAITS_FOR_A_LOCK).await;
    let drained = tokio::spawn(layer.drained());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!drained.is_finished(), "a write is under way");
    drop(held);
    soon(drained).await.unwrap();
    assert_eq!(database.count(&format!("select {counted}::int8")).await, 10);
    assert_rows!(database, claims: 10, effects: 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn b4_a_layer_is_drained_within_its_limit_whatever_postgres_does() {
    for link in [Link::Silent, Link::Refusing] {
        let database = Database::new().await;
        let (network, pool) = pool_on_a_network(&database).await;
        let recovery = Recovery::elsewhere(pool.clone());
        let layer = layer_of(&pool, Keep::all(&recovery)).database_timeout(Duration::from_secs(1));
        let router: Router = Router::new().route("/", post(write_effect).layer(layer.clone()));
        send(&router, github("a", "{}")).await;
        network.set(link);
        within_the_limit(layer.drained()).await;
        // Counts that could not be written are not lost while the process lives.
        network.set(Link::Up);
        soon(async {
            loop {
                layer.drained().await;
                let counted = "select count(*) from idempotent_webhook.activity";
                if database.count(counted).await > 0 {
                    break;
                }
            }
        })
        .await;
    }
}

/// A pool whose connection hooks panic while the test says so.
fn pool_that_panics(
    database: &Database,
    panics: &Arc<AtomicBool>,
    count: &Arc<AtomicU32>,
) -> PgPool {
    let (panics, count) = (panics.clone(), count.clone());
    let connected = move || {
        if panics.load(Ordering::SeqCst) {
            count.fetch_add(1, Ordering::SeqCst);
            panic!("on purpose");
        }
    };
    let acquired = connected.clone();
    PgPoolOptions::new()
        .max_connections(5)
        .test_before_acquire(false)
        .before_acquire(move |_, _| {
            acquired();
            Box::pin(async { Ok(true) })
        })
        .after_connect(move |_, _| {
            connected();
            Box::pin(async { Ok(()) })
        })
        .connect_lazy_with(database.options())
}

#[tokio::test]
async fn b4_a_background_task_that_panics_is_an_error_and_goes_on() {
    let database = Database::new().await;
    let (panics, count) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let pool = pool_that_panics(&database, &panics, &count);
    let recovery = recovery(&pool);
    let layer = layer_of(&pool, keep(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    database.insert_due(3).await;
    let log = logged(async {
        // The request is refused and counted without a connection.
        let forged = github_delivery().tampered();
        assert_eq!(send(&router, forged.request()).await.status, 401);
        let recovering = recovery.spawn(router.clone());
        let retention = Retention::new(pool.clone(), 45 * DAY).every(Duration::from_millis(100));
        let retention = retention.spawn();
        for task in ["recovery", "heartbeat", "watch", "activity", "retention"] {
            until_logged(&format!("task=\"{task}\"")).await;
        }
        panics.store(false, Ordering::SeqCst);
        database.until(NOTHING_KEPT).await;
        database
            .until("exists (select from idempotent_webhook.rejections)")
            .await;
        database
            .until("exists (select from idempotent_webhook.kept_endpoints where served_at is not null)")
            .await;
        soon(retention.stop()).await;
        soon(recovering.stop()).await;
        soon(layer.drained()).await;
    })
    .await;
    assert!(log.contains("ERROR"), "{log}");
    assert!(count.load(Ordering::SeqCst) > 4);
    assert_eq!(database.count(NUMBERS).await, 0);
    assert_rows!(database, claims: 3, effects: 3);
}

/// If a batch of kept deliveries panics, the requests that wait for it get an answer, and the next batch is written.
#[tokio::test]
async fn b4_a_batch_that_panics_is_an_error_and_the_next_one_is_kept() {
    let database = Database::new().await;
    let (panics, count) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let pool = pool_that_panics(&database, &panics, &count);
    let recovery = recovery(&pool);
    let layer = layer_of(&pool, keep_accepted(&recovery));
    let router: Router = Router::new().route("/", post(StatusCode::OK).layer(layer));
    let accepted = answer(200, "accepted", "");
    let log = logged(async {
        assert_eq!(send(&router, github("a", "{}")).await, accepted);
        panics.store(true, Ordering::SeqCst);
        assert_eq!(soon(send(&router, github("b", "{}"))).await.status, 503);
        panics.store(false, Ordering::SeqCst);
        assert_eq!(soon(send(&router, github("b", "{}"))).await, accepted);
    })
    .await;
    assert!(log.contains("task=\"acceptances\""), "{log}");
}

/// If the current batch panics, requests that wait for the next batch must still get an answer other than a 503.
#[tokio::test]
async fn b4_what_waits_behind_a_batch_that_panics_is_kept() {
    let database = Database::new().await;
    let panics = Arc::new(AtomicBool::new(false));
    let (mut gate, way) = gate();
    let pool = PgPoolOptions::new()
        .test_before_acquire(false)
        .before_acquire({
            let panics = panics.clone();
            move |_, _| {
                let (panics, way) = (panics.swap(false, Ordering::SeqCst), way.clone());
                Box::pin(async move {
                    if panics {
                        way.pass().await;
                        panic!("on purpose");
                    }
                    Ok(true)
                })
            }
        })
        .connect_lazy_with(database.options());
    let recovery = recovery(&pool);
    let layer = layer_of(&pool, keep_accepted(&recovery)).without_activity();
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let accepted = answer(200, "accepted", "");
    let log = logged(async {
        assert_eq!(send(&router, github("a", "{}")).await, accepted);
        database.until(NOTHING_KEPT).await;
        panics.store(true, Ordering::SeqCst);
        let panicking = spawn_send(&router, github("b", "{}"));
        gate.reached().await;
        let waiting = spawn_send(&router, github("c", "{}"));
        // Leaves time for the delivery to get into the queue.
        tokio::time::sleep(Duration::from_millis(100)).await;
        gate.open();
        assert_eq!(soon(panicking).await.unwrap().status, 503);
        assert_eq!(soon(waiting).await.unwrap(), accepted);
    })
    .await;
    assert!(log.contains("task=\"acceptances\""), "{log}");
    database.until(NOTHING_KEPT).await;
    assert_rows!(database, claims: 2, effects: 2);
}

/// If the gauges stopped after a panic, the alert `WebhooksSilent` would page somebody.
#[tokio::test]
async fn b4_gauges_that_are_read_from_the_database_go_on_after_a_panic() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    // The recorder is set for this thread, which is the only thread of the test's runtime.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             values ('test', to_timestamp(1700000000), 'request', 'processed', 1, to_timestamp(1700000000))",
        )
        .await;
    let (panics, count) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let pool = pool_that_panics(&database, &panics, &count);
    let log = logged(async {
        let _layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
            .expect_every(Duration::from_secs(3600))
            .only(["push"]);
        until_logged("task=\"activity\"").await;
        panics.store(false, Ordering::SeqCst);
        let_pass(Duration::from_secs(31)).await;
        soon(async {
            let labels = "{endpoint=\"test\",provider=\"github\"";
            let gauges = [
                format!("idempotent_webhook_last_authentic_timestamp_seconds{labels}}} 1700000000"),
                format!("idempotent_webhook_event_types{labels},state=\"new\"}} 0"),
            ];
            while !gauges.iter().all(|gauge| exporter.render().contains(gauge)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    })
    .await;
    assert!(log.contains("ERROR"), "{log}");
}
