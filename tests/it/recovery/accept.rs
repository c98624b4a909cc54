//! `Keep::all` and `Keep::accepted`: deliveries are kept before their handlers run. Deliveries that are kept at the
//! same time form a group: they share a transaction, and nothing else.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Provider, Recovery, Secret,
    Secrets, TenantSecrets, presets,
};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgPool};

use crate::support::{
    Database, Failing, NONE_TAKEN, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, Process, Runs, SECRET, SOON,
    TestApp, answer, assert_accepted, assert_kept, assert_rows, endpoint, gate, gated, github,
    github_delivery, insert_effect, keep, keep_accepted, keep_all, keeping_by, keeping_of, lock,
    outcomes, recover, recover_all, secret, send, send_in_one_group, soon, spawn_send,
    write_effect,
};

#[tokio::test]
async fn r15_a_request_is_committed_before_its_handler_runs_whose_answer_the_provider_gets() {
    for archived in [false, true] {
        let (mut gate, way) = gate();
        let handler = move |mut tx: DedupeTx, delivery: Delivery| {
            let way = way.clone();
            async move {
                insert_effect(&mut tx, &delivery).await?;
                way.pass().await;
                Ok::<_, HandlerError>((StatusCode::CREATED, "done"))
            }
        };
        let way = |recovery: &Recovery| match archived {
            true => keep_all(recovery).processed_for(Duration::from_secs(3600)),
            false => keep_all(recovery),
        };
        let app = keeping_by(way, handler).await;
        let sent = spawn_send(&app.router, github("a", "what was sent"));
        gate.reached().await;
        let is_kept = "exists (
            select
            from idempotent_webhook.kept_deliveries
            join idempotent_webhook.kept_requests using (endpoint, tenant, delivery_id)
            where taken_by is not null and body = 'what was sent'
        )";
        app.database.until(is_kept).await;
        assert_kept!(app.database, "due", attempts: 1, retries: 0);
        assert_rows!(app.database, claims: 0, effects: 0);
        gate.open();
        assert_eq!(sent.await.unwrap(), answer(201, "processed", "done"));
        if archived {
            assert_kept!(app.database, "processed", attempts: 1, retries: 0);
            let processed = Filter::new().state(KeptState::Processed);
            let listed = endpoint(&app).kept(&processed, None, 1).await.unwrap();
            assert_eq!(listed[0].delivery_id, "a");
        } else {
            app.database.until(NOTHING_KEPT).await;
        }
        let again = app.send(github("a", "what was sent")).await;
        assert_eq!(again, answer(200, "duplicate", ""));
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test]
async fn r15_a_failure_stays_kept_and_a_resend_runs_the_handler_at_once() {
    for acknowledge in [false, true] {
        let failing = Failing::times(1);
        let way = |recovery: &Recovery| match acknowledge {
            true => keep_all(recovery).acknowledge(),
            false => keep_all(recovery),
        };
        let app = keeping_by(way, failing.handler()).await;
        let status = if acknowledge { 200 } else { 500 };
        let failed = app.send(github("a", "{}")).await;
        assert_eq!(failed, answer(status, "kept", ""));
        assert_kept!(app.database, "due", attempts: 1, retries: 0);
        let listed = endpoint(&app).kept(&Filter::new(), None, 1).await.unwrap();
        assert_eq!(listed[0].reason.as_deref(), Some("not yet"));
        assert_rows!(app.database, claims: 0, effects: 0);

        let resent = app.send(github("a", "{}")).await;
        assert_eq!(resent, answer(200, "processed", ""));
        app.database.until(NOTHING_KEPT).await;
        assert_eq!(failing.attempts().len(), 2);
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test]
async fn r15_what_cannot_be_kept_is_not_handled() {
    for way in [keep_all, keep_accepted] {
        let hour = Duration::from_secs(3600);
        let way = |recovery: &Recovery| way(recovery).processed_for(hour);
        let app = keeping_by(way, Failing::times(0).handler()).await;
        app.database
            .run("alter table idempotent_webhook.kept_requests rename to gone")
            .await;
        let refused = app.send(github("a", "{}")).await;
        assert_eq!((refused.status, &*refused.outcome), (503, "failed"));
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// The operator has chosen a limit that is lower than the endpoint's limit.
#[tokio::test]
async fn r3_a_body_over_the_limit_of_what_is_kept_is_refused_and_recorded() {
    for way in [keep_all, keep_accepted] {
        let app = keeping_by(
            |recovery| way(recovery).body_limit(10),
            Failing::times(0).handler(),
        )
        .await;
        let refused = app.send(github("large", "0123456789a")).await;
        assert_eq!(refused, answer(503, "failed", "temporarily unavailable"));
        assert_kept!(app.database, "recorded", attempts: 1, retries: 0);
        assert_rows!(app.database, claims: 0, effects: 0);
        assert_eq!(app.runs(), 0);
        // A body within the limit is kept before its handler runs.
        let taken = app.send(github("small", "0123456789")).await;
        assert_eq!(taken.status, 200);
        app.database.until("exists (select from effects)").await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// A delivery of any size that the endpoint accepts is kept. For example, GitHub's pushes are up to 25 MiB, and are not
/// sent again.
#[tokio::test]
async fn r3_what_the_endpoint_takes_is_kept_whatever_its_size() {
    const MIB: usize = 1024 * 1024;
    for size in [MIB - 1, MIB + 1, 25 * MIB] {
        for way in [keep, keep_all, keep_accepted] {
            let app = keeping_by(way, Failing::times(1).handler()).await;
            let body = format!("\"{}\"", "x".repeat(size - 2));
            app.send(github("a", &*body)).await;
            app.settled().await;
            let kept = format!(
                "exists (
                    select from idempotent_webhook.kept_requests
                    join idempotent_webhook.kept_deliveries using (endpoint, tenant, delivery_id)
                    where state = 'due' and taken_by is null and octet_length(body) = {size}
                )"
            );
            app.database.until(&kept).await;
            assert_rows!(app.database, claims: 0, effects: 0);
            recover_all(&app).await;
            assert_rows!(app.database, claims: 1, effects: 1);
        }
    }
}

/// A large body is kept, and the process that runs its handler is lost in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn r3_a_large_body_survives_the_process_of_its_handler() {
    for way in [keep_all, keep_accepted] {
        let database = Database::new().await;
        let (mut gate, handler) = gated();
        let process = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        {
            let _in_process = process.enter();
            let of_process = Process::new(database.another_pool(3).await, way, handler);
            let body = format!("\"{}\"", "x".repeat(1536 * 1024));
            spawn_send(&of_process.router, github("a", &*body));
        }
        gate.reached().await;
        process.shutdown_background();
        let other = Process::new(database.pool.clone(), way, write_effect);
        let recovering = other.recover();
        database.until(NOTHING_KEPT).await;
        recovering.stop().await;
        assert_rows!(database, claims: 1, effects: 1);
    }
}

/// The senders hang up after more and more time, so that every await before, during and after the acceptance is hit.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_hang_up_at_any_moment_loses_nothing_that_was_kept() {
    for way in [keep_all, keep_accepted] {
        let app = keeping_by(way, write_effect).await;
        for moment in 0..200 {
            let sending = send(&app.router, github(&moment.to_string(), "{}"));
            let _ = tokio::time::timeout(Duration::from_micros(50 * moment), sending).await;
        }
        app.settled().await;
        recover_all(&app).await;
        let rows = app.database.rows().await;
        assert_eq!(rows.claims, rows.effects);
        for moment in 0..200 {
            let retry = app.send(github(&moment.to_string(), "{}")).await;
            assert_eq!(retry.status, 200);
        }
        recover_all(&app).await;
        assert_rows!(app.database, claims: 200, effects: 200);
        assert_eq!(app.runs(), 200);
    }
}

/// The statement that deletes the kept row must not run outside of the claim's transaction.
#[tokio::test]
async fn r5_what_is_kept_stays_if_the_handler_has_ended_its_transaction() {
    for archived_for in [None, Some(Duration::from_secs(3600))] {
        let way = |recovery: &Recovery| match archived_for {
            Some(time) => keep_all(recovery).processed_for(time),
            None => keep_all(recovery),
        };
        // A handler must not do this, because it loses the claim.
        let app = keeping_by(way, async |mut tx: DedupeTx| {
            tx.execute(sqlx::raw_sql("rollback")).await.unwrap();
        })
        .await;
        let failed = app.send(github("a", "{}")).await;
        assert_eq!((failed.status, &*failed.outcome), (500, "kept"));
        assert_kept!(app.database, "due", attempts: 1, retries: 0);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// `assert_idempotent` rolls back a first attempt, and this attempt is not kept as a failure.
#[tokio::test(flavor = "multi_thread")]
async fn r15_the_assertion_works_on_layers_that_keep_and_accept() {
    for way in [keep, keep_all, keep_accepted] {
        let app = keeping_by(way, write_effect).await;
        let effects = async || app.database.rows().await.effects;
        assert_idempotent(&app.router, &github_delivery(), effects).await;
        // A copy that came while the first delivery was finishing may have left a kept row. Recovery runs it and finds
        // a duplicate.
        recover_all(&app).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

/// A provider whose requests name the tenant in the query of the URI.
fn of_tenants() -> Provider {
    let tenant = |head: &Parts| head.uri.query().map(str::to_owned);
    let secrets = TenantSecrets::new(tenant, |_| async {
        Ok(Some(Secrets::new(Secret::new(SECRET)?)))
    });
    presets::github(secrets.separate_ids())
}

/// There are enough deliveries to exceed the limits of one group, by number and by size. In `repeatable read`, a
/// statement fails if it meets a row of another transaction.
#[tokio::test(flavor = "multi_thread")]
async fn r15_many_that_are_accepted_at_once_are_each_kept_and_run_once() {
    for isolation in ["read committed", "repeatable read"] {
        let runs = Runs::default();
        let app = keeping_of(of_tenants(), keep_accepted, runs.handler()).await;
        app.database
            .run(&format!(
                "alter database {} set default_transaction_isolation = '{isolation}'",
                app.database.name
            ))
            .await;
        let pool = app.database.another_pool(5).await;
        let elsewhere = Process::of(of_tenants(), pool, keep_accepted, runs.handler());
        let routers = [&app.router, &elsewhere.router];
        let mut sent = Vec::new();
        for id in 0..30 {
            for tenant in ["acme", "globex"] {
                for copy in 0..4 {
                    let request = github_delivery()
                        .id(format!("id-{id}"))
                        .uri(&format!("/?{tenant}"))
                        .body(vec![b' '; 30_000]);
                    sent.push(spawn_send(routers[copy % 2], request.request()));
                }
            }
        }
        for (status, outcome) in outcomes(sent).await {
            let is_there = ["accepted", "duplicate"].contains(&&*outcome);
            assert!(status == 200 && is_there, "{status} {outcome}");
        }
        recover_all(&app).await;
        assert_rows!(app.database, claims: 60, effects: 60);
        let runs = runs.all();
        assert_eq!(runs.len(), 60);
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    }
}

#[tokio::test]
async fn r15_in_one_group_each_delivery_has_the_outcome_of_its_state() {
    let runs = Runs::default();
    let app = runs.app().await;
    assert_eq!(
        app.send(github("processed", "{}")).await.outcome,
        "accepted"
    );
    app.database.until(NOTHING_KEPT).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, retries, next_attempt_at, taken_by)
             values
                 ('test', 'due', 'due', 1, 0, now() + interval '1 hour', null),
                 ('test', 'running', 'due', 2, 1, now() + interval '1 hour', 1),
                 ('test', 'dead', 'dead', 4, 3, null, null),
                 ('test', 'recorded', 'recorded', 7, 0, null, null);
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', delivery_id, 1, 'POST', '/', '', 'first'
             from idempotent_webhook.kept_deliveries where delivery_id <> 'recorded'",
        )
        .await;
    // Keeps handlers from starting, so that the test can look at the rows.
    endpoint(&app).pause().await.unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let ids = ["processed", "due", "running", "dead", "recorded", "new"];
    let group = [ids, ids].concat();
    let group = group.iter().map(|id| github(id, "second")).collect();
    let sent = send_in_one_group(&app, group).await;
    drop(locked);
    let outcomes = outcomes(sent).await;
    for (id, of_id) in ids.iter().chain(&ids).zip(&outcomes[1..]) {
        let expected = match *id {
            "processed" => "duplicate",
            _ => "accepted",
        };
        assert_eq!(*of_id, (200, expected.to_owned()), "{id}");
    }
    type Row = (String, String, i32, i32, bool, bool, String);
    let rows: Vec<Row> = sqlx::query_as(
        "select delivery_id, state, attempts, retries, next_attempt_at <= now(),
             taken_by is not null, convert_from(body, 'utf8')
         from idempotent_webhook.kept_deliveries
         join idempotent_webhook.kept_requests using (endpoint, tenant, delivery_id)
         where delivery_id <> 'before'
         order by delivery_id",
    )
    .fetch_all(&app.database.pool)
    .await
    .unwrap();
    let row = |id: &str, attempts, retries, is_due, is_taken, body: &str| -> Row {
        let (id, state, body) = (id.to_owned(), "due".to_owned(), body.to_owned());
        (id, state, attempts, retries, is_due, is_taken, body)
    };
    let expected = [
        row("dead", 4, 0, true, false, "first"),
        row("due", 1, 0, true, false, "first"),
        row("new", 0, 0, true, false, "second"),
        row("recorded", 7, 0, true, false, "second"),
        // This delivery is being attempted, so the result of the attempt decides when the next one is due.
        row("running", 2, 1, false, true, "first"),
    ];
    assert_eq!(rows, expected);

    endpoint(&app).resume().await.unwrap();
    app.database.lose_takers().await;
    app.database.make_due().await;
    recover_all(&app).await;
    for id in ids {
        assert_eq!(runs.of(id), 1, "{id}");
    }
    assert_rows!(app.database, claims: 7, effects: 7);
}

/// Copies in one group count as one attempt, so the handler runs once.
#[tokio::test]
async fn r15_copies_in_one_group_are_one_attempt() {
    let failing = Failing::times(99);
    let app = keeping_by(keep_accepted, failing.handler()).await;
    let locked = lock(&app.database, "kept_deliveries").await;
    let copies = (0..4).map(|_| github("a", "{}")).collect();
    let sent = send_in_one_group(&app, copies).await;
    drop(locked);
    assert_accepted(sent).await;
    app.database.until(NONE_TAKEN).await;
    app.settled().await;
    assert_eq!(failing.attempts(), [1, 1], "one attempt at each delivery");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Postgres does not answer until the senders have given up.
#[tokio::test(flavor = "multi_thread")]
async fn g14_a_request_that_was_refused_is_not_kept_later() {
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let layer = layer.database_timeout(Duration::from_millis(500));
        layer.keep(keep_accepted(recovery))
    };
    let runs = Runs::default();
    let app = TestApp::recovered(presets::github(secret()), set, runs.handler()).await;
    assert_eq!(app.send(github("before", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    let locked = lock(&app.database, "kept_deliveries").await;
    let mut sent = Vec::new();
    for id in 0..500 {
        sent.push(spawn_send(&app.router, github(&id.to_string(), "{}")));
    }
    for sent in sent {
        assert_eq!(soon(sent).await.unwrap().status, 503);
    }
    // The group that is being written may still be waiting until its time limit. This sleep is long enough for one such
    // group, but not for eight.
    tokio::time::sleep(Duration::from_secs(2)).await;
    locked.rollback().await.unwrap();
    let after = async { while app.send(github("after", "{}")).await.status != 200 {} };
    soon(after).await;
    // A request of that group may have been kept although its answer came too late.
    recover_all(&app).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// Postgres refuses the delivery because of a constraint or trigger that the operator has added.
#[tokio::test]
async fn r15_a_delivery_that_postgres_refuses_does_not_fail_the_others() {
    let runs = Runs::default();
    let app = runs.app().await;
    app.database
        .run("alter table idempotent_webhook.kept_requests add check (uri <> '/?refused')")
        .await;
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = ["a", "b", "refused", "c", "d", "refused"].map(|id| {
        let uri = if id == "refused" { "/?refused" } else { "/" };
        github_delivery().id(id).uri(uri).request()
    });
    let sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let outcomes = outcomes(sent).await;
    let accepted = |outcome: &(u16, String)| *outcome == (200, "accepted".to_owned());
    let refused = |outcome: &(u16, String)| *outcome == (503, "failed".to_owned());
    let (of_refused, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(refused);
    assert_eq!(of_refused.len(), 2);
    assert!(others.iter().all(accepted), "{others:?}");
    recover_all(&app).await;
    assert_eq!(runs.of("refused"), 0);
    assert_rows!(app.database, claims: 5, effects: 5);
}

/// If the row of a known delivery is locked, only a request for that delivery waits.
#[tokio::test]
async fn r15_a_row_that_is_locked_holds_up_neither_its_group_nor_what_comes_later() {
    let runs = Runs::default();
    let app = runs.app().await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             values
                 ('test', 'dead', 'dead', 1, null),
                 ('test', 'due', 'due', 1, now() + interval '1 hour')",
        )
        .await;
    let mut rows = app.database.another_pool(1).await.begin().await.unwrap();
    rows.execute("select from idempotent_webhook.kept_deliveries for update")
        .await
        .unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = ["new", "due", "dead"].map(|id| github(id, "{}"));
    let mut sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let waiting = sent.split_off(2);
    assert_accepted(sent).await;
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    let later = soon(app.send(github("later", "{}"))).await;
    assert_eq!(later, answer(200, "accepted", ""));
    assert!(waiting.iter().all(|sent| !sent.is_finished()));
    drop(rows);
    assert_accepted(waiting).await;
    recover_all(&app).await;
    assert_rows!(app.database, claims: 5, effects: 5);
}

#[tokio::test]
async fn r15_two_processes_reopen_what_is_dead_at_the_same_instant() {
    let runs = Runs::default();
    let app = runs.app().await;
    let elsewhere = runs.elsewhere(&app, 2).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
             values ('test', 'dead', 'dead', 1)",
        )
        .await;
    let mut row = app.database.another_pool(1).await.begin().await.unwrap();
    row.execute("select from idempotent_webhook.kept_deliveries for update")
        .await
        .unwrap();
    let routers = [&app.router, &elsewhere.router];
    let sent = routers.map(|router| spawn_send(router, github("dead", "{}")));
    let both_wait = "(
        select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
    ) = 2";
    app.database.until(both_wait).await;
    drop(row);
    assert_accepted(sent.into()).await;
    recover_all(&app).await;
    assert_eq!(runs.of("dead"), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A single connection is enough for new deliveries, known deliveries and handlers, even if new deliveries never stop
/// coming.
#[tokio::test(flavor = "multi_thread")]
async fn r15_one_connection_is_enough() {
    let runs = Runs::default();
    let app = runs.app().await;
    let process = runs.elsewhere(&app, 1).await;
    let senders: Vec<_> = (0..16)
        .map(|sender| {
            let router = process.router.clone();
            tokio::spawn(async move {
                for number in 0.. {
                    let request = || github(&format!("{sender}-{number}"), "{}");
                    for _ in 0..2 {
                        let _ = send(&router, request()).await;
                    }
                }
            })
        })
        .collect();
    let some = "(select count(*) from idempotent_webhook.deliveries) >= 3";
    app.database.until(some).await;
    for sender in senders {
        sender.abort();
    }
}

/// Each connection receives notifications, as it would if a handler had called `listen`.
#[tokio::test(flavor = "multi_thread")]
async fn r15_notifications_do_not_fail_what_is_accepted() {
    let runs = Runs::default();
    let app = runs.app().await;
    let listening = PgPoolOptions::new()
        .max_connections(5)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("listen orders").await.map(drop) })
        })
        .connect_lazy_with(app.database.options());
    let process = Process::new(listening, keep_accepted, runs.handler());
    let notifying = tokio::spawn({
        let pool = app.database.another_pool(1).await;
        async move {
            loop {
                sqlx::query("notify orders").execute(&pool).await.unwrap();
            }
        }
    });
    accept_from_many(&process.router, 4, 25).await;
    notifying.abort();
    recover_all(&app).await;
    assert_rows!(app.database, claims: 100, effects: 100);
}

/// Sends from this number of senders at the same time. Each sender sends this number of deliveries, one after the
/// other.
async fn accept_from_many(router: &Router, senders: u32, deliveries: u32) {
    let sending = (0..senders).map(|sender| {
        let router = router.clone();
        tokio::spawn(async move {
            for number in 0..deliveries {
                let id = format!("{sender}-{number}");
                let answered = send(&router, github(&id, "{}")).await;
                assert_eq!(answered, answer(200, "accepted", ""));
            }
        })
    });
    for sender in sending.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
}

/// Accepts deliveries with a pool whose connections keep no prepared statements between transactions.
pub async fn accepts_in_groups(pool: PgPool) {
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool.clone(), "groups", presets::github(secret()))
        .keep(keep_accepted(&recovery));
    let runs = Runs::default();
    let router = Router::new().route("/", post(runs.handler()).layer(layer));
    let endpoint = Endpoint::new(pool, "groups");
    // While the endpoint is paused, no handler uses the connections.
    endpoint.pause().await.unwrap();
    accept_from_many(&router, 8, 50).await;
    assert_eq!(
        endpoint
            .kept(&Filter::new(), None, 500)
            .await
            .unwrap()
            .len(),
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_paused_endpoint_accepts_and_does_not_run() {
    let failing = Failing::times(0);
    let app = keeping_by(keep_accepted, failing.handler()).await;
    endpoint(&app).pause().await.unwrap();
    let recovery = recover(&app);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    tokio::time::sleep(20 * SOON).await;
    assert!(failing.attempts().is_empty());
    assert_kept!(app.database, "due", attempts: 0, retries: 0);

    endpoint(&app).resume().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Handlers that run in the background leave connections for new requests.
#[tokio::test(flavor = "multi_thread")]
async fn r15_slow_handlers_do_not_keep_others_from_being_accepted() {
    let slow = |mut tx: DedupeTx, delivery: Delivery| async move {
        insert_effect(&mut tx, &delivery).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok::<_, HandlerError>(())
    };
    let app = keeping_by(keep_accepted, slow).await;
    let sent = (0..20).map(|id| spawn_send(&app.router, github(&format!("id-{id}"), "{}")));
    assert_accepted(sent.collect()).await;
    recover_all(&app).await;
    assert_rows!(app.database, claims: 20, effects: 20);
}

/// The senders hang up before they get an answer.
#[tokio::test(flavor = "multi_thread")]
async fn r15_a_sender_that_hangs_up_leaves_nothing_that_waits() {
    for way in [keep_all, keep_accepted] {
        let app = keeping_by(way, write_effect).await;
        for step in 0..40 {
            let sent = spawn_send(&app.router, github(&format!("id-{step}"), "{}"));
            tokio::time::sleep(Duration::from_micros(100 * step)).await;
            sent.abort();
        }
        // This delivery is kept, no matter how busy the machine is.
        assert_eq!(app.send(github("last", "{}")).await.status, 200);
        app.settled().await;
        app.database.lose_takers().await;
        recover_all(&app).await;
        let rows = app.database.rows().await;
        assert!(rows.effects > 0 && rows.claims == rows.effects, "{rows:?}");
    }
}

#[tokio::test]
async fn r2_a_token_in_the_query_is_not_kept() {
    // With `Keep::accepted`, a delivery runs at once, and is kept until it has run.
    let (mut gate, handler) = gated();
    let set = |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(keep_accepted(recovery));
    let app = TestApp::recovered(presets::cloudevents(secret()), set, handler).await;
    let request = Request::post(format!("/?a=b&access_token={SECRET}&c"))
        .header("ce-id", "1")
        .header("ce-source", "/test")
        .body(Body::empty())
        .unwrap();
    assert_eq!(app.send(request).await, answer(200, "accepted", ""));
    gate.reached().await;
    let kept: String = sqlx::query_scalar("select uri from idempotent_webhook.kept_requests")
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(kept, "/?a=b&c");
    gate.open();
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}
