//! What each step writes of a kept delivery, and what it must not touch because somebody else has
//! written it meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::middleware::map_request;
use axum::routing::post;
use idempotent_webhook::recovery::{Filter, KeptState, Retried};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Recovery, presets,
};
use sqlx::{Executor, PgPool, Postgres, Transaction};
use tokio::sync::Semaphore;

use crate::recovery::{
    Answered, Failing, NOTHING_KEPT, ONE_DEAD, SOON, endpoint, keep, kept, recover,
};
use crate::recovery_field::{ONE_WAITS_FOR_A_LOCK, insert_due};
use crate::support::{
    Database, Gate, TestApp, answer, assert_rows, gate, gated, github, insert_effect, logged,
    secret, soon, spawn_send, write_effect,
};

/// A router whose requests pass through a gate first.
fn held_back(router: &Router) -> (Router, Gate) {
    let (gate, way) = gate();
    let wait = move |request: Request<Body>| {
        let way = way.clone();
        async move {
            way.pass().await;
            request
        }
    };
    (router.clone().layer(map_request(wait)), gate)
}

/// The attempts that are counted, those of the schedule, and whether one is running.
async fn running(database: &Database) -> (String, i32, i32, bool) {
    sqlx::query_as(
        "select state, attempts, retries, running_until is not null
         from idempotent_webhook.kept_deliveries",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

const IS_RUNNING: &str =
    "exists (select from idempotent_webhook.kept_deliveries where running_until > now())";

#[tokio::test]
async fn r8_what_a_handler_says_at_a_retry_of_the_provider_counts() {
    let runs = Arc::new(AtomicU32::new(0));
    let handler = move |_: DedupeTx| {
        let error = HandlerError::new("not yet");
        let error = match runs.fetch_add(1, Ordering::Relaxed) {
            0 => error.retry_after(Duration::from_secs(600)),
            1 => error.retry_after(Duration::from_secs(3600)),
            3 => error.dead(),
            _ => error,
        };
        std::future::ready(Err::<(), _>(error))
    };
    let app = TestApp::github_with(keep, handler).await;
    let in_an_hour = "exists (
        select from idempotent_webhook.kept_deliveries
        where next_attempt_at > now() + interval '30 minutes'
    )";
    let mut states = Vec::new();
    for attempt in 1..=5 {
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        states.push(kept(&app.database).await);
        if let 2 | 3 = attempt {
            // Without a word, the time stays that of the schedule.
            app.database.until(in_an_hour).await;
        }
    }
    let state = |state: &str, attempts| (state.to_owned(), attempts, 0);
    assert_eq!(
        states,
        [
            state("due", 1),
            state("due", 2),
            state("due", 3),
            state("dead", 4),
            // Its provider alone does not revive it.
            state("dead", 5),
        ]
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_the_end_of_an_attempt_does_not_undo_an_operators_retry() {
    let (gate, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let handler = {
        let (gate, go_on) = (gate.clone(), go_on.clone());
        move |_: DedupeTx, delivery: Delivery| -> Answered {
            let (gate, go_on) = (gate.clone(), go_on.clone());
            Box::pin(async move {
                if delivery.attempt() > 1 {
                    go_on.add_permits(1);
                    gate.acquire().await.unwrap().forget();
                }
                Err(HandlerError::new("not yet"))
            })
        }
    };
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([SOON]);
    let app = TestApp::github_with(set, handler).await;
    app.send(github("a", "{}")).await;
    let recovery = recover(&app);
    soon(go_on.acquire()).await.unwrap().forget();
    endpoint(&app).pause().await.unwrap();
    let later = "update idempotent_webhook.kept_deliveries
                 set running_until = now(), next_attempt_at = now() + interval '1 hour'";
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Unchanged);
    // Longer than an attempt may take, but its transaction is there.
    app.database.run(later).await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Unchanged);
    // Its connection is lost, which it finds out at its end.
    app.database
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction'",
        )
        .await;
    let is_gone = "not exists (
        select from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'
    )";
    app.database.until(is_gone).await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Due);
    gate.add_permits(1);
    // Waits for the attempt, which was the last one of the schedule before.
    recovery.stop().await;
    assert_eq!(running(&app.database).await, ("due".into(), 2, 0, false));

    endpoint(&app).resume().await.unwrap();
    gate.add_permits(1);
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("dead".into(), 3, 1));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// It was taken over by another process, since it did not end in time.
#[tokio::test(flavor = "multi_thread")]
async fn r7_an_attempt_that_is_given_back_late_does_not_end_the_next_one() {
    let app = TestApp::github_with(keep, Failing::times(1).handler()).await;
    app.send(github("a", "{}")).await;
    let (no_route, mut no_route_gate) =
        held_back(&Router::new().route("/else", post(write_effect)));
    let (another, another_gate) = held_back(&app.router);
    let late = Recovery::new(app.database.pool.clone(), no_route)
        .concurrency(1)
        .spawn();
    no_route_gate.reached().await;
    // It takes nothing more, and waits for its attempt.
    let late = tokio::spawn(late.stop());
    app.database
        .run("update idempotent_webhook.kept_deliveries set running_until = now()")
        .await;
    let next = Recovery::new(app.database.another_pool(5).await, another).spawn();
    app.database.until(IS_RUNNING).await;
    no_route_gate.open();
    soon(late).await.unwrap();
    assert_eq!(running(&app.database).await, ("due".into(), 3, 2, true));
    another_gate.open();
    app.database.until(NOTHING_KEPT).await;
    next.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_a_delivery_that_is_in_flight_elsewhere_costs_no_attempt() {
    let set = |layer: IdempotentWebhook| keep(layer).in_flight_timeout(Duration::from_millis(100));
    let failing = Failing::times(1);
    let app = TestApp::github_with(set, failing.handler()).await;
    app.send(github("a", "{}")).await;
    let (mut gate, handler) = gated();
    let elsewhere = app.elsewhere(handler).await;
    let sent = spawn_send(&elsewhere, github("a", "{}"));
    gate.reached().await;
    let recovery = recover(&app);
    let given_back = "exists (
        select from idempotent_webhook.kept_deliveries
        where running_until is null and next_attempt_at > now() + interval '2 seconds'
    )";
    app.database.until(given_back).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    gate.open();
    assert_eq!(sent.await.unwrap().outcome, "processed");

    app.database
        .run("update idempotent_webhook.kept_deliveries set next_attempt_at = now()")
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_one_delivery_that_fails_again_and_again_holds_nothing_back() {
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([Duration::ZERO; 6]);
    let app = TestApp::github_with(set, Failing::times(99).handler()).await;
    app.send(github("a", "{}")).await;
    let recovery = Recovery::new(app.database.pool.clone(), app.router.clone())
        .breaker(2, Duration::from_secs(3600))
        .spawn();
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("dead".into(), 7, 6));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_success_ends_the_failures_in_a_row_and_a_discard_does_not() {
    let database = Database::new().await;
    insert_due(&database, 1).await;
    database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids)
             values ('test', '{x,y}')",
        )
        .await;
    let handler = |mut tx: DedupeTx, delivery: Delivery| async move {
        insert_effect(&mut tx, &delivery).await?;
        match delivery.id().as_str() {
            "due-1" => Err(HandlerError::new("not for us").discard()),
            _ => Ok(()),
        }
    };
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let router: Router = Router::new().route("/", post(handler).layer(keep(layer)));
    let failed_ids = async || -> Vec<String> {
        sqlx::query_scalar("select failed_ids from idempotent_webhook.kept_endpoints")
            .fetch_one(&database.pool)
            .await
            .unwrap()
    };
    let recovery = Recovery::new(database.pool.clone(), router.clone()).spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failed_ids().await, ["x", "y"]);
    assert_rows!(database, claims: 0, effects: 0);

    insert_due(&database, 2).await;
    database
        .run("delete from idempotent_webhook.kept_deliveries where delivery_id = 'due-1'")
        .await;
    database
        .run("delete from idempotent_webhook.kept_requests where delivery_id = 'due-1'")
        .await;
    let recovery = Recovery::new(database.pool.clone(), router).spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failed_ids().await, <[&str; 0]>::default());
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r13_a_retry_of_many_takes_each_once_even_if_it_fails_again_meanwhile() {
    let app = TestApp::github_with(keep, write_effect).await;
    insert_due(&app.database, 2500).await;
    // Each fails as soon as it is due.
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set state = 'dead', last_failed_at = now() - interval '1 hour';
             create function fails() returns trigger language plpgsql as $$
             begin
                 new.state := 'dead';
                 new.last_failed_at := clock_timestamp();
                 return new;
             end $$;
             create trigger fails before update on idempotent_webhook.kept_deliveries
             for each row when (new.state = 'due') execute function fails()",
        )
        .await;
    let retried = soon(endpoint(&app).retry_all(&Filter::new())).await;
    assert_eq!(retried.unwrap(), 2500);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r15_what_another_process_accepts_at_the_same_instant_is_accepted_once() {
    let failing = Failing::times(0);
    let set = |layer| keep(layer).accept_first();
    let app = TestApp::github_with(set, failing.handler()).await;
    let mut other = app.database.another_pool(1).await.begin().await.unwrap();
    other
        .execute(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at, running_until)
             values ('test', 'a', 'due', 1, now(), now() + interval '1 hour')",
        )
        .await
        .unwrap();
    let sent = spawn_send(&app.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    other.commit().await.unwrap();
    assert_eq!(sent.await.unwrap(), answer(200, "accepted", ""));
    assert_eq!(running(&app.database).await, ("due".into(), 1, 0, true));
    assert!(failing.attempts().is_empty());
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_an_endpoint_with_much_to_do_does_not_keep_another_one_waiting() {
    let database = Database::new().await;
    insert_due(&database, 60).await;
    // All but the last three belong to the endpoint that comes first.
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set endpoint = case when delivery_id in ('due-58', 'due-59', 'due-60')
                 then 'b' else 'a' end;
             update idempotent_webhook.kept_requests
             set endpoint = case when delivery_id in ('due-58', 'due-59', 'due-60')
                 then 'b' else 'a' end, uri = '/'",
        )
        .await;
    database
        .run("update idempotent_webhook.kept_requests set uri = '/' || endpoint")
        .await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let order = order.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            order.lock().unwrap().push(delivery.endpoint().to_owned());
            Box::pin(async move {
                insert_effect(&mut tx, &delivery).await?;
                Ok(StatusCode::OK)
            })
        }
    };
    let layer = |endpoint: &str| {
        let github = presets::github(secret());
        keep(IdempotentWebhook::new(
            database.pool.clone(),
            endpoint,
            github,
        ))
    };
    let router: Router = Router::new()
        .route("/a", post(handler.clone()).layer(layer("a")))
        .route("/b", post(handler).layer(layer("b")));
    let recovery = Recovery::new(database.pool.clone(), router)
        .concurrency(1)
        .spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let order = order.lock().unwrap().clone();
    assert_eq!(
        order[..6].iter().filter(|of| *of == "b").count(),
        3,
        "{order:?}"
    );
    assert_rows!(database, claims: 60, effects: 60);
    let left = Endpoint::new(database.pool.clone(), "b");
    assert!(left.kept(&Filter::new(), 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn r4_an_attempt_that_has_reached_its_layer_is_not_taken_for_one_without_a_route() {
    let app = TestApp::github_with(keep, Failing::times(2).handler()).await;
    let log = logged(async {
        app.send(github("a", "{}")).await;
        let recovery = recover(&app);
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
    })
    .await;
    assert!(
        !log.contains("no layer of this endpoint was reached"),
        "{log}"
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_success_of_the_provider_ends_the_failures_in_a_row() {
    // Of the provider, of recovery, and of a probe.
    let failing = Failing::times(3);
    let app = TestApp::github_with(keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let hour = Duration::from_secs(60 * 60);
    let recovery = Recovery::new(app.database.pool.clone(), app.router.clone())
        .breaker(1, hour)
        .spawn();
    app.database
        .until(
            "exists (select from idempotent_webhook.kept_deliveries
                 where attempts = 3 and running_until is null)
             and exists (select from idempotent_webhook.kept_endpoints where probe_at > now())",
        )
        .await;
    assert_eq!(app.send(github("b", "{}")).await.outcome, "processed");
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2, 3, 1, 4]);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_an_endpoint_that_failures_hold_back_goes_on_when_it_is_resumed() {
    let app = TestApp::github_with(keep, write_effect).await;
    insert_due(&app.database, 5).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids, probe_at)
             values ('test', '{a,b,c,d,e,f,g,h,i,j,k}', now() + interval '1 hour')",
        )
        .await;
    endpoint(&app).resume().await.unwrap();
    // It has all its failures again before it is held back.
    let is_closed = "exists (
        select from idempotent_webhook.kept_endpoints where failed_ids = '{}' and probe_at is null
    )";
    app.database.until(is_closed).await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 5, effects: 5);
}

/// A deploy has lowered the limit since.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_body_that_was_accepted_once_is_not_too_large_later() {
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    let body = vec![b' '; 3000];
    assert_eq!(app.send(github("a", body)).await.outcome, "kept");
    let github = presets::github(secret()).body_limit(10);
    let layer = IdempotentWebhook::new(app.database.pool.clone(), "test", github);
    let router: Router = Router::new().route("/", post(write_effect).layer(keep(layer)));
    let recovery = Recovery::new(app.database.pool.clone(), router).spawn();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_second_request_brings_its_delivery_forward() {
    let set = |layer: IdempotentWebhook| {
        let hour = Duration::from_secs(3600);
        layer.accept_first().retry_delays([hour, hour])
    };
    let app = TestApp::github_with(set, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    let has_failed = "exists (
        select from idempotent_webhook.kept_deliveries
        where running_until is null and last_failed_at is not null
    )";
    app.database.until(has_failed).await;
    insert_due(&app.database, 1).await;
    let recovery = Recovery::new(app.database.pool.clone(), app.router.clone())
        .poll_interval(Duration::from_secs(3600))
        .spawn();
    // It has run what was due, and waits for what comes.
    let only_a = "not exists (
        select from idempotent_webhook.kept_deliveries where delivery_id <> 'a'
    )";
    app.database.until(only_a).await;
    app.settled().await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn r15_a_cached_duplicate_needs_no_postgres() {
    let set = |layer| {
        let layer = keep(layer).accept_first();
        layer.cache_processed(100, Duration::from_secs(600))
    };
    let app = TestApp::github_with(set, write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    app.database
        .run("alter table idempotent_webhook.kept_deliveries rename to gone")
        .await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.send(github("b", "{}")).await.status, 503);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r13_a_retry_is_of_what_is_not_running_and_of_its_own_tenant() {
    let app = TestApp::github_with(keep, write_effect).await;
    insert_due(&app.database, 3).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries set state = 'dead';
             update idempotent_webhook.kept_deliveries
             set state = 'due', next_attempt_at = now() + interval '1 hour',
                 running_until = now() + interval '1 hour'
             where delivery_id = 'due-1';
             update idempotent_webhook.kept_deliveries set tenant = 'acme'
             where delivery_id = 'due-2';
             update idempotent_webhook.kept_requests set tenant = 'acme'
             where delivery_id = 'due-2'",
        )
        .await;
    let of = endpoint(&app);
    assert_eq!(of.retry("due-1").await.unwrap(), Retried::Unchanged);
    assert_eq!(of.retry("due-2").await.unwrap(), Retried::Unchanged);
    assert_eq!(of.retry("due-3").await.unwrap(), Retried::Due);
    let of_acme = of.tenant("acme");
    assert_eq!(of_acme.retry("due-3").await.unwrap(), Retried::Unchanged);
    assert_eq!(of_acme.retry("due-2").await.unwrap(), Retried::Due);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Its first body was over the limit.
#[tokio::test]
async fn r3_what_was_recorded_and_is_accepted_later_counts_for_the_quota() {
    let set = |layer| keep(layer).accept_first();
    let app = TestApp::github_with(set, write_effect).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts)
             values ('test', 'a', 'recorded', 1)",
        )
        .await;
    endpoint(&app).pause().await.unwrap();
    assert_eq!(app.send(github("a", "12345")).await.outcome, "accepted");
    let bytes: (Option<i32>, i32) = sqlx::query_as(
        "select body_bytes, octet_length(body) from idempotent_webhook.kept_deliveries
         join idempotent_webhook.kept_requests using (endpoint, tenant, delivery_id)",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(bytes, (Some(5), 5));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r13_what_has_failed_since_one_looked_is_left_out() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, last_failed_at)
             select 'test', id, 'dead', 1, now() - ago
             from (values ('old', interval '1 hour'), ('new', interval '1 s')) as failed (id, ago);
             insert into idempotent_webhook.kept_requests
                (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', delivery_id, 1, 'POST', '/', '', ''
             from idempotent_webhook.kept_deliveries",
        )
        .await;
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    let looked = SystemTime::now() - Duration::from_secs(60);
    let seen = Filter::new().failed_before(looked);
    assert_eq!(endpoint.kept(&seen, 10).await.unwrap().len(), 1);
    assert_eq!(endpoint.retry_all(&seen).await.unwrap(), 1);
    database
        .until(
            "(select state from idempotent_webhook.kept_deliveries where delivery_id = 'old') = 'due'
             and (select state from idempotent_webhook.kept_deliveries where delivery_id = 'new')
                = 'dead'",
        )
        .await;
    assert_eq!(endpoint.discard_all(&seen).await.unwrap(), 1);
    assert_eq!(endpoint.discard_all(&seen).await.unwrap(), 0);
    let rest = endpoint.kept(&Filter::new(), 10).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].delivery_id, "new");
    assert_eq!(endpoint.discard_all(&Filter::new()).await.unwrap(), 1);
    database.until(NOTHING_KEPT).await;
}

/// Another attempt at the delivery `due-1`, for which that of recovery waits.
async fn another_attempt(database: &Database) -> Transaction<'static, Postgres> {
    let mut tx = database.pool.begin().await.unwrap();
    tx.execute(
        "select pg_advisory_xact_lock(
             hashtextextended('due-1', hashtextextended('', hashtextextended('test', 0)))
         )",
    )
    .await
    .unwrap();
    tx
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_pause_holds_back_what_waits_for_another_attempt() {
    let failing = Failing::times(0);
    let app = TestApp::github_with(keep, failing.handler()).await;
    insert_due(&app.database, 1).await;
    let another = another_attempt(&app.database).await;
    let recovery = recover(&app);
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    endpoint(&app).pause().await.unwrap();
    another.rollback().await.unwrap();
    app.database
        .until("(select running_until is null from idempotent_webhook.kept_deliveries)")
        .await;
    assert!(failing.attempts().is_empty());
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_rows!(app.database, claims: 0, effects: 0);

    endpoint(&app).resume().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_discard_does_not_wait_for_an_attempt_that_waits_itself() {
    let failing = Failing::times(0);
    let app = TestApp::github_with(keep, failing.handler()).await;
    insert_due(&app.database, 1).await;
    let another = another_attempt(&app.database).await;
    let recovery = recover(&app);
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    assert!(soon(endpoint(&app).discard("due-1")).await.unwrap());
    another.rollback().await.unwrap();
    recovery.stop().await;
    assert!(failing.attempts().is_empty());
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_does_not_wait_for_an_attempt_that_waits_itself() {
    let app = TestApp::github_with(keep, write_effect).await;
    insert_due_and_processed(&app.database).await;
    let another = another_attempt(&app.database).await;
    let recovery = recover(&app);
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    assert!(soon(endpoint(&app).forget("due-1")).await.unwrap());
    another.rollback().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The delivery `due-1`, processed, whose row has stayed behind: its process was killed.
async fn insert_due_and_processed(database: &Database) {
    insert_due(database, 1).await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'due-1')",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_and_the_claim_of_what_was_processed_are_no_deadlock() {
    let app = TestApp::github_with(keep, write_effect).await;
    insert_due_and_processed(&app.database).await;
    app.database
        .run(
            "create function wait() returns trigger language plpgsql as $$
             begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
             create trigger wait before insert on idempotent_webhook.deliveries
                for each row execute function wait()",
        )
        .await;
    let mut slow = app.database.another_pool(1).await.begin().await.unwrap();
    slow.execute("select pg_advisory_xact_lock(1)")
        .await
        .unwrap();
    let recovery = recover(&app);
    let claiming = "exists (select from pg_locks where locktype = 'advisory' and not granted)";
    app.database.until(claiming).await;
    let forgetting = tokio::spawn({
        let endpoint = endpoint(&app);
        async move { endpoint.forget("due-1").await }
    });
    let forgets_or_waits = "not exists (select from idempotent_webhook.kept_deliveries)
         or (select count(*) from pg_stat_activity where wait_event_type = 'Lock') > 1";
    app.database.until(forgets_or_waits).await;
    drop(slow);
    assert!(soon(forgetting).await.unwrap().unwrap());
    recovery.stop().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Who has locked the row of a delivery can still lock what belongs to it: whoever deletes begins with
/// the row, as a discard does and a failed attempt, and so does not wait for one who waits for it.
async fn deletes_the_row_before<T>(
    table: &str,
    app: &TestApp,
    deletes: impl Future<Output = T>,
) -> T {
    let row = "select from idempotent_webhook.kept_deliveries for no key update";
    let belongs = format!("select from idempotent_webhook.{table} for update nowait");
    let mut tx = app.database.another_pool(1).await.begin().await.unwrap();
    tx.execute(row).await.unwrap();
    let locks = async {
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        let belongs = sqlx::raw_sql(sqlx::AssertSqlSafe(belongs));
        tx.execute(belongs).await.unwrap();
        tx.rollback().await.unwrap();
    };
    tokio::join!(deletes, locks).0
}

/// The end of an attempt, at an endpoint that has failed before.
async fn ends_before(table: &str) {
    let (mut gate, handler) = gated();
    let app = TestApp::github_with(keep, handler).await;
    insert_due(&app.database, 1).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids)
             values ('test', array['b'])",
        )
        .await;
    let recovery = recover(&app);
    gate.reached().await;
    deletes_the_row_before(table, &app, async { gate.open() }).await;
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_the_end_of_an_attempt_and_a_discard_are_no_deadlock() {
    ends_before("kept_requests").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_the_end_of_an_attempt_and_a_failed_one_are_no_deadlock() {
    ends_before("kept_endpoints").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_and_a_discard_are_no_deadlock() {
    let app = TestApp::github_with(keep, write_effect).await;
    insert_due_and_processed(&app.database).await;
    let endpoint = endpoint(&app);
    let forgets = endpoint.forget("due-1");
    let forgotten = deletes_the_row_before("kept_requests", &app, forgets).await;
    assert!(forgotten.unwrap());
    app.database.until(NOTHING_KEPT).await;
}

/// Both lock in the order of the key.
#[tokio::test(flavor = "multi_thread")]
async fn r13_the_ends_of_attempts_and_a_discard_of_many_are_no_deadlock() {
    let app = TestApp::github_with(keep, write_effect).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'a', 'dead', 1, now()), ('test', 'b', 'dead', 1, now() - interval '1 h')",
        )
        .await;
    let mut tx = app.database.another_pool(1).await.begin().await.unwrap();
    let lock = |id| {
        let lock = "select from idempotent_webhook.kept_deliveries where delivery_id = $1
             for update nowait";
        sqlx::query(lock).bind(id)
    };
    lock("a").execute(&mut *tx).await.unwrap();
    let discarding = tokio::spawn({
        let endpoint = endpoint(&app);
        async move { endpoint.discard_all(&Filter::new()).await }
    });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    lock("b").execute(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(soon(discarding).await.unwrap().unwrap(), 2);
}

/// One that is retried while its lock is waited for is no longer dead.
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_discard_of_many_leaves_what_has_changed_meanwhile() {
    let app = TestApp::github_with(keep, write_effect).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'a', 'dead', 1, now()), ('test', 'b', 'dead', 1, now())",
        )
        .await;
    let mut tx = app.database.another_pool(1).await.begin().await.unwrap();
    tx.execute(
        "update idempotent_webhook.kept_deliveries set state = 'due', next_attempt_at = now()
         where delivery_id = 'a'",
    )
    .await
    .unwrap();
    let discarding = tokio::spawn({
        let endpoint = endpoint(&app);
        let dead = Filter::new().state(KeptState::Dead);
        async move { endpoint.discard_all(&dead).await }
    });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    tx.commit().await.unwrap();
    assert_eq!(soon(discarding).await.unwrap().unwrap(), 1);
    assert_eq!(kept(&app.database).await.0, "due");
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_waits_for_another_one_at_any_default_isolation_level() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let options = app.database.options().await;
    let options = options.options([("default_transaction_isolation", "serializable")]);
    let serializable = Endpoint::new(PgPool::connect_lazy_with(options), "test");
    let mut tx = app.database.another_pool(1).await.begin().await.unwrap();
    tx.execute("delete from idempotent_webhook.deliveries")
        .await
        .unwrap();
    let forgetting = tokio::spawn(async move { serializable.forget("a").await });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    tx.commit().await.unwrap();
    assert!(!soon(forgetting).await.unwrap().unwrap());
    assert_rows!(app.database, claims: 0, effects: 1);
}

#[tokio::test]
async fn r1_a_state_that_is_unknown_or_without_a_time_is_refused_by_the_table() {
    let database = Database::new().await;
    for (state, time) in [("'undone'", "now()"), ("'due'", "null"), ("null", "now()")] {
        let insert = format!(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('test', 'a', {state}, 1, {time})"
        );
        let refused = database
            .pool
            .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(insert)));
        assert!(refused.await.is_err(), "{state} {time}");
    }
}
