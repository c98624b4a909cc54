//! What recovery meets in the field: providers that retry at the same instant, a Postgres that goes
//! away between two steps, outages, rolling deploys, and clocks that differ.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, OriginalUri, Path, Query, State};
use axum::http::{HeaderName, Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Recovery, Secret, presets,
};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgPool, Postgres, Transaction};

use crate::recovery::{Answered, Failing, NOTHING_KEPT, ONE_DEAD, SOON, keep, kept};
use crate::support::throwaway_postgres::{Durability, ThrowawayPostgres};
use crate::support::{
    Database, SECRET, TestApp, answer, assert_rows, github, github_delivery, insert_effect, secret,
    send, send_copies, spawn_send, stripe_delivery, stripe_event, write_effect,
};

/// Deliveries that are due, as if the provider's attempt at each had failed.
pub async fn insert_due(database: &Database, count: u32) {
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select 'test', 'due-' || n, 'due', 1, now() from generate_series(1, {count}) as n;
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', 'due-' || n, 1, 'POST', '/', '', '{{}}'
             from generate_series(1, {count}) as n"
        ))
        .await;
}

/// Locks a table against those who write to it, for as long as the transaction is there.
pub async fn lock(database: &Database, table: &str) -> Transaction<'static, Postgres> {
    let mut tx = database.another_pool(1).await.begin().await.unwrap();
    let lock = format!("lock table idempotent_webhook.{table} in share mode");
    tx.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(lock)))
        .await
        .unwrap();
    tx
}

pub const ONE_WAITS_FOR_A_LOCK: &str = "exists (
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
)";

pub const END_WHO_WAITS_FOR_A_LOCK: &str = "
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread")]
async fn r5_the_providers_retry_and_ours_at_the_same_instant_commit_once() {
    const ROUNDS: i64 = 150;
    let (seen, runs) = (
        Arc::new(Mutex::new(HashSet::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let handler = {
        let runs = runs.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            runs.fetch_add(1, Ordering::Relaxed);
            let is_first = seen.lock().unwrap().insert(delivery.id().to_string());
            Box::pin(async move {
                insert_effect(&mut tx, &delivery).await?;
                match is_first {
                    true => Err(HandlerError::new("not yet")),
                    false => Ok(StatusCode::OK),
                }
            })
        }
    };
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([Duration::ZERO; 20]);
    let app = TestApp::github_with(set, handler.clone()).await;
    let routers = [app.router.clone(), app.elsewhere_with(set, handler).await];
    let mut recoveries = Vec::new();
    for router in &routers {
        let recovery = Recovery::new(app.database.another_pool(5).await, router.clone());
        recoveries.push(recovery.poll_interval(Duration::from_millis(10)).spawn());
    }
    for round in 0..ROUNDS {
        let id = format!("id-{round}");
        let first = app.send(github(&id, "{}")).await;
        assert_eq!(first, answer(500, "kept", ""));
        for retried in send_copies(&routers, 2, || github(&id, "{}")).await {
            let is_committed = ["processed", "duplicate"].contains(&&*retried.outcome);
            assert!(is_committed && retried.status == 200, "{retried:?}");
        }
    }
    app.database.until(NOTHING_KEPT).await;
    for recovery in recoveries {
        recovery.stop().await;
    }
    assert_eq!(
        runs.load(Ordering::Relaxed),
        2 * 150,
        "one fails, one commits"
    );
    assert_rows!(app.database, claims: ROUNDS, effects: ROUNDS);
}

#[tokio::test]
async fn r5_what_another_process_commits_before_it_is_kept_is_a_duplicate() {
    for acknowledge in [false, true] {
        let set = move |layer| match acknowledge {
            true => keep(layer).acknowledge_kept(),
            false => keep(layer),
        };
        let app = TestApp::github_with(set, Failing::times(9).handler()).await;
        let elsewhere = app.elsewhere(write_effect).await;
        // After the rollback, and before the row is kept.
        let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
        locked
            .execute("lock table idempotent_webhook.kept_deliveries in access exclusive mode")
            .await
            .unwrap();
        let sent = spawn_send(&app.router, github("a", "{}"));
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        let committed = send(&elsewhere, github("a", "{}")).await;
        assert_eq!(committed, answer(200, "processed", "done"));
        locked.commit().await.unwrap();
        assert_eq!(sent.await.unwrap(), answer(200, "duplicate", ""));
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test]
async fn r14_connections_that_are_lost_before_the_keep_is_committed_are_no_success() {
    let set = |layer| keep(layer).acknowledge_kept();
    let app = TestApp::github_with(set, Failing::times(9).handler()).await;
    let locked = lock(&app.database, "kept_requests").await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    for _ in 0..2 {
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        app.database.run(END_WHO_WAITS_FOR_A_LOCK).await;
    }
    assert_eq!(sent.await.unwrap(), answer(500, "failed", ""));
    drop(locked);
    app.database.until(NOTHING_KEPT).await;

    // Of a single one, nothing is heard.
    let locked = lock(&app.database, "kept_requests").await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    app.database.run(END_WHO_WAITS_FOR_A_LOCK).await;
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    drop(locked);
    assert_eq!(sent.await.unwrap(), answer(200, "kept", ""));
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_a_postgres_that_crashes_before_the_rollback_is_no_success_and_leaves_nothing() {
    let server = Arc::new(ThrowawayPostgres::start(Durability::Durable).await.unwrap());
    let pool = PgPoolOptions::new().connect_lazy_with(server.options("postgres"));
    idempotent_webhook::migrate(&pool).await.unwrap();
    let crashes = Arc::new(AtomicBool::new(true));
    let handler = {
        let (server, crashes) = (server.clone(), crashes.clone());
        move |_: DedupeTx| {
            if crashes.load(Ordering::Relaxed) {
                tokio::task::block_in_place(|| server.crash()).unwrap();
            }
            std::future::ready(Err::<(), _>(HandlerError::new("not yet")))
        }
    };
    let github_layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let layer = keep(github_layer).acknowledge_kept();
    let router: Router = Router::new().route("/", post(handler).layer(layer));
    let failed = answer(500, "failed", "");
    assert_eq!(send(&router, github("a", "{}")).await, failed);

    server.start_again().await.unwrap();
    crashes.store(false, Ordering::Relaxed);
    let rows = async || -> (i64, i64, i64) {
        sqlx::query_as(
            "select
                (select count(*) from idempotent_webhook.deliveries),
                (select count(*) from idempotent_webhook.kept_deliveries),
                (select count(*) from idempotent_webhook.kept_requests)",
        )
        .fetch_one(&pool)
        .await
        .unwrap()
    };
    assert_eq!(rows().await, (0, 0, 0));
    let acknowledged = answer(200, "kept", "");
    assert_eq!(send(&router, github("a", "{}")).await, acknowledged);
    assert_eq!(rows().await, (0, 1, 1));
}

/// How many of something there are at once, and were at most.
#[derive(Clone, Default)]
struct Gauge {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl Gauge {
    async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.all.fetch_add(1, Ordering::SeqCst);
        let done = work.await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    fn all(&self) -> usize {
        self.all.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_recovery_takes_at_most_half_of_the_pool_and_senders_are_answered() {
    let database = Database::new().await;
    insert_due(&database, 200).await;
    let recovering = Gauge::default();
    let handler = {
        let recovering = recovering.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let recovering = recovering.clone();
            Box::pin(async move {
                let work = async {
                    insert_effect(&mut tx, &delivery).await?;
                    // Long enough for another one to be taken.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    Ok(StatusCode::OK)
                };
                match delivery.attempt() {
                    1 => work.await,
                    _ => recovering.during(work).await,
                }
            })
        }
    };
    let pool = database.another_pool(2).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router: Router = Router::new().route("/", post(handler).layer(keep(layer)));
    let recovery = Recovery::new(pool, router.clone()).concurrency(10).spawn();
    for live in 0..50 {
        let answered = send(&router, github(&format!("live-{live}"), "{}")).await;
        assert_eq!(answered, answer(200, "processed", ""));
    }
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!((recovering.most(), recovering.all()), (1, 200));
    assert_rows!(database, claims: 250, effects: 250);
}

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
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([Duration::ZERO; 9]);
    let app = TestApp::github_with(set, handler).await;
    insert_due(&app.database, 60).await;
    let recovery = Recovery::new(app.database.pool.clone(), app.router.clone())
        .breaker(3, Duration::from_secs(3600))
        .concurrency(CONCURRENCY)
        .poll_interval(Duration::from_millis(20))
        .spawn();
    let probed = "exists (
        select from idempotent_webhook.kept_endpoints
        where cardinality(failed_ids) >= 3 and probe_at > now() + interval '50 minutes'
    )
    and not exists (
        select from idempotent_webhook.kept_deliveries where running_until is not null
    )";
    app.database.until(probed).await;
    // Those that were running when it opened, and the first probe.
    let opened = runs.all();
    assert!(
        (BREAKER..BREAKER + CONCURRENCY + 1).contains(&opened),
        "{opened}"
    );
    for probe in 1..4 {
        // As if the interval were over.
        app.database
            .run("update idempotent_webhook.kept_endpoints set probe_at = now()")
            .await;
        app.database.until(probed).await;
        assert_eq!(runs.all(), opened + probe);
    }
    let spent: i64 = sqlx::query_scalar(
        "select sum(retries) from idempotent_webhook.kept_deliveries where state = 'due'",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(usize::try_from(spent).unwrap(), opened + 3);
    assert_rows!(app.database, claims: 0, effects: 0);

    down.store(false, Ordering::Relaxed);
    app.database
        .run("update idempotent_webhook.kept_endpoints set probe_at = now()")
        .await;
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert!(runs.most() <= CONCURRENCY, "{}", runs.most());
    assert_rows!(app.database, claims: 60, effects: 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_process_of_the_version_before_leaves_a_new_endpoint_alone() {
    let database = Database::new().await;
    let failing = Failing::times(1);
    let layer = |endpoint: &str| {
        let github = presets::github(secret());
        keep(IdempotentWebhook::new(
            database.pool.clone(),
            endpoint,
            github,
        ))
    };
    let before = || -> Router { Router::new().route("/a", post(write_effect).layer(layer("a"))) };
    let after = || before().route("/b", post(failing.handler()).layer(layer("b")));
    let new: Router = after();
    let sent = github_delivery().uri("/b");
    assert_eq!(send(&new, sent.request()).await.outcome, "kept");
    drop(new);

    let old = before();
    insert_due(&database, 3).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries set endpoint = 'a', next_attempt_at = now()
             where endpoint = 'test';
             update idempotent_webhook.kept_requests set endpoint = 'a', uri = '/a'
             where endpoint = 'test'",
        )
        .await;
    let recovery = Recovery::new(database.pool.clone(), old).spawn();
    let a_is_done = "not exists (
        select from idempotent_webhook.kept_deliveries where endpoint = 'a'
    )";
    database.until(a_is_done).await;
    recovery.stop().await;
    assert_eq!(kept(&database).await, ("due".into(), 1, 0));

    let recovery = Recovery::new(database.pool.clone(), after()).spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2]);
    assert_rows!(database, claims: 4, effects: 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_a_handler_under_nest_finds_all_that_the_router_and_the_server_add() {
    type Seen = Arc<Mutex<Vec<String>>>;
    async fn handler(
        Path(team): Path<String>,
        matched: MatchedPath,
        OriginalUri(uri): OriginalUri,
        Query(query): Query<Vec<(String, String)>>,
        ConnectInfo(address): ConnectInfo<SocketAddr>,
        State(seen): State<Seen>,
        _: DedupeTx,
    ) -> StatusCode {
        let mut seen = seen.lock().unwrap();
        let matched = matched.as_str();
        seen.push(format!("{team} {matched} {uri} {query:?} {address}"));
        match seen.len() {
            1 => StatusCode::CONFLICT,
            _ => StatusCode::OK,
        }
    }
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let seen = Seen::default();
    let hooks = Router::new()
        .route("/hooks/{team}", post(handler).layer(keep(layer)))
        .with_state(seen.clone());
    let router = Router::new().nest("/api", Router::new().nest("/v1", hooks));
    let address = SocketAddr::from(([192, 0, 2, 1], 4321));
    let sent = github_delivery().uri("/api/v1/hooks/a%20team?x=1&x=%F0%9F%8E%82");
    let mut request: Request<Body> = sent.request();
    request.extensions_mut().insert(ConnectInfo(address));
    assert_eq!(send(&router, request).await, answer(409, "kept", ""));

    let recovery = Recovery::new(database.pool.clone(), router)
        .prepare_request(move |head| {
            head.extensions.insert(ConnectInfo(address));
        })
        .spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let seen = seen.lock().unwrap().clone();
    let as_sent = "a team /api/v1/hooks/{team} /api/v1/hooks/a%20team?x=1&x=%F0%9F%8E%82 \
                   [(\"x\", \"1\"), (\"x\", \"🎂\")] 192.0.2.1:4321";
    assert_eq!(seen, [as_sent; 2]);
    assert_rows!(database, claims: 1, effects: 0);
}

/// Stripe tolerates five minutes, and by then the secret is another one.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_delivery_is_run_a_day_later_with_another_secret() {
    let stripe = presets::stripe(secret());
    let app = TestApp::with(stripe, keep, Failing::times(9).handler()).await;
    let sent = stripe_delivery(stripe_event("a"));
    assert_eq!(app.send(sent.request()).await.outcome, "kept");
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set first_received_at = first_received_at - interval '1 day';
             update idempotent_webhook.kept_requests
             set signed_at = signed_at - interval '1 day'",
        )
        .await;
    let rotated = presets::stripe(Secret::new("whsec_rotated").unwrap());
    let layer = IdempotentWebhook::new(app.database.pool.clone(), "test", rotated);
    let router: Router = Router::new().route("/", post(write_effect).layer(keep(layer)));
    assert_eq!(send(&router, sent.request()).await.outcome, "rejected");
    let recovery = Recovery::new(app.database.pool.clone(), router).spawn();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r4_no_header_of_a_client_skips_the_verification() {
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    app.send(github("a", "{}")).await;
    for (name, value) in [
        ("x-webhook-outcome", "kept"),
        ("x-webhook-attempt", "2"),
        ("x-idempotent-webhook", "recovery"),
        ("x-idempotent-webhook-replay", "true"),
        ("replay", "test a"),
        ("x-verified", "1"),
        ("user-agent", "idempotent-webhook"),
    ] {
        for id in ["a", "b"] {
            let forged = github_delivery().id(id).unsigned();
            let forged = forged.header(HeaderName::from_static(name), value);
            let refused = app.send(forged.request()).await;
            assert_eq!(
                (refused.status, &*refused.outcome),
                (401, "rejected"),
                "{name}"
            );
        }
    }
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The paths were exchanged by a deploy.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_request_of_one_endpoint_is_not_taken_for_one_of_another() {
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    app.send(github("a", "{}")).await;
    let pool = app.database.pool.clone();
    let another = IdempotentWebhook::new(pool, "another", presets::github(secret()));
    let router: Router = Router::new().route("/", post(write_effect).layer(keep(another)));
    let recovery = Recovery::new(app.database.pool.clone(), router).spawn();
    let deferred = "exists (
        select from idempotent_webhook.kept_deliveries
        where running_until is null and next_attempt_at > now() + interval '50 seconds'
    )";
    app.database.until(deferred).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r2_no_column_of_any_table_has_a_credential_of_the_request() {
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    let mut sent = github_delivery();
    let credentials = [
        ("authorization", "Bearer hunter2"),
        ("proxy-authorization", "Basic hunter3"),
        ("cookie", "session=hunter4"),
        ("x-api-key", "hunter5"),
        ("x-gitlab-token", "hunter6"),
    ];
    for (name, value) in credentials {
        sent = sent.header(HeaderName::from_static(name), value);
    }
    let request: Request<Body> = sent.request();
    let signature = request.headers()["x-hub-signature-256"].to_str().unwrap();
    let signature = signature.trim_start_matches("sha256=").to_owned();
    assert_eq!(app.send(request).await.outcome, "kept");
    let tables: Vec<String> = sqlx::query_scalar(
        "select format('%I.%I', table_schema, table_name) from information_schema.tables
         where table_schema = 'idempotent_webhook'",
    )
    .fetch_all(&app.database.pool)
    .await
    .unwrap();
    assert!(tables.len() > 5, "{tables:?}");
    let mut dump = String::new();
    for table in tables {
        let rows = format!("select coalesce(string_agg(t::text, ''), '') from {table} as t");
        let rows: String = sqlx::query_scalar(sqlx::AssertSqlSafe(rows))
            .fetch_one(&app.database.pool)
            .await
            .unwrap();
        dump += &rows.to_lowercase();
    }
    let is_there = |text: &str| {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        dump.contains(text) || dump.contains(&hex)
    };
    assert!(
        is_there("x-github-delivery"),
        "the dump has the headers: {dump}"
    );
    for never in ["hunter", SECRET, &signature, "x-hub-signature-256"] {
        assert!(!is_there(never), "{never}: {dump}");
    }
    for (name, _) in credentials {
        assert!(!is_there(name), "{name}: {dump}");
    }
}

/// The clock of Postgres is that of all times, so it does not matter by how much that of a process
/// differs. Here it is the one of Postgres that is moved.
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
        let options = database.options().await;
        let options = options.options([("search_path", "shifted,pg_catalog,public")]);
        let pool = PgPool::connect_lazy_with(options);
        let handler = |mut tx: DedupeTx, delivery: Delivery| async move {
            insert_effect(&mut tx, &delivery).await?;
            let error = HandlerError::new("not yet");
            match (delivery.id().as_str(), delivery.attempt()) {
                ("later", _) => Err(error.retry_after(Duration::from_secs(1800))),
                ("soon", 1 | 2) => Err(error),
                _ => Ok(()),
            }
        };
        let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
        let router: Router = Router::new().route("/", post(handler).layer(keep(layer)));
        for id in ["later", "soon"] {
            let kept = send(&router, github(id, "{}")).await;
            assert_eq!(kept, answer(500, "kept", ""));
        }
        // An attempt of another process that has not ended.
        insert_due(&database, 1).await;
        database
            .run(&format!(
                "update idempotent_webhook.kept_deliveries
                 set next_attempt_at = now() + interval '{shift}',
                     running_until = now() + interval '{shift}' + interval '30 minutes'
                 where delivery_id = 'due-1'"
            ))
            .await;
        let recovery = Recovery::new(pool.clone(), router).spawn();
        let soon_is_done = "not exists (
            select from idempotent_webhook.kept_deliveries where delivery_id = 'soon'
        )";
        database.until(soon_is_done).await;
        recovery.stop().await;
        let others: Vec<(String, i32)> = sqlx::query_as(
            "select delivery_id, attempts from idempotent_webhook.kept_deliveries order by 1",
        )
        .fetch_all(&database.pool)
        .await
        .unwrap();
        assert_eq!(others, [("due-1".to_owned(), 1), ("later".to_owned(), 1)]);
        assert_rows!(database, claims: 1, effects: 1);
        pool.close().await;
    }
}

/// Two processes look for what is due at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn r6_an_attempt_that_is_running_is_not_begun_by_another_process() {
    let runs = Gauge::default();
    let handler = {
        let runs = runs.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let runs = runs.clone();
            Box::pin(async move {
                runs.during(async {
                    insert_effect(&mut tx, &delivery).await?;
                    tokio::time::sleep(5 * SOON).await;
                    Err(HandlerError::new("not yet"))
                })
                .await
            })
        }
    };
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([Duration::ZERO; 4]);
    let app = TestApp::github_with(set, handler).await;
    insert_due(&app.database, 1).await;
    let mut recoveries = Vec::new();
    for _ in 0..3 {
        let pool = app.database.another_pool(5).await;
        let recovery = Recovery::new(pool, app.router.clone());
        recoveries.push(recovery.poll_interval(SOON).spawn());
    }
    app.database.until(ONE_DEAD).await;
    for recovery in recoveries {
        recovery.stop().await;
    }
    // A second one would wait for the claim, and be counted nevertheless.
    assert_eq!(kept(&app.database).await, ("dead".into(), 5, 4));
    assert_eq!((runs.most(), runs.all()), (1, 4));
}
