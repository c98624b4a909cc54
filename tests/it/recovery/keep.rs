//! Guarantees R1 to R5, R14, R15 and R17: what is kept of a delivery, when it is kept, and when the
//! kept row is deleted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::recovery::{Discarded, Filter, KeptState};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Endpoint, IdempotentWebhook, Keep, Recovery, Secret, Secrets, TenantSecrets, presets,
    prune,
};
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::support::{
    Database, Failing, NOTHING_KEPT, ONE_DEAD, SECRET, SOON, TestApp, answer, assert_kept,
    assert_rows, due_after, endpoint, github, github_delivery, keep, keep_accepted, keep_all,
    keeping_by, logged, recover, secret, send, write_effect,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_the_providers_if_its_request_began_it() {
    type Attempts = Vec<String>;
    for (way, origins) in [
        (keep as fn(&Recovery) -> Keep, ["provider", "recovery"]),
        (keep_all, ["provider", "recovery"]),
        (keep_accepted, ["provider", "recovery"]),
    ] {
        let way = |recovery: &Recovery| way(recovery).retry_delays([SOON]);
        let app = keeping_by(way, Failing::times(9).handler()).await;
        app.send(github("a", "{}")).await;
        app.database
            .until(
                "exists (
                    select from idempotent_webhook.kept_deliveries where last_failed_at is not null
                )",
            )
            .await;
        let recovery = recover(&app);
        app.database.until(ONE_DEAD).await;
        recovery.stop().await;
        let by: Attempts = sqlx::query_scalar(
            "select attempt ->> 'by'
             from idempotent_webhook.kept_deliveries, jsonb_array_elements(history) as attempt",
        )
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
        assert_eq!(by, origins);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_failed_delivery_is_kept_and_run_again_until_it_is_processed() {
    let failing = Failing::times(3);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
    assert_rows!(app.database, claims: 0, effects: 0);
    let listed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&*listed[0].delivery_id, listed[0].state, listed[0].attempts),
        ("a", KeptState::Due, 1)
    );
    assert_eq!(listed[0].reason.as_deref(), Some("not yet"));

    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2, 3, 4]);
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "duplicate");
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_what_the_handler_gets_is_what_the_provider_sent_without_its_credentials() {
    type Seen = Arc<Mutex<Vec<(String, String, String, HeaderMap, Bytes)>>>;
    async fn handler(
        Path(team): Path<String>,
        Query(query): Query<Vec<(String, String)>>,
        OriginalUri(uri): OriginalUri,
        State(seen): State<Seen>,
        _: DedupeTx,
        headers: HeaderMap,
        body: Bytes,
    ) -> StatusCode {
        let query = format!("{query:?}");
        let mut seen = seen.lock().unwrap();
        seen.push((team, query, uri.to_string(), headers, body));
        match seen.len() {
            1 => StatusCode::CONFLICT,
            _ => StatusCode::OK,
        }
    }
    let database = Database::new().await;
    let github = presets::github(secret());
    let seen = Seen::default();
    let recovery = Recovery::new(database.pool.clone());
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", github.clone())
        .keep(keep(&recovery).headers([HeaderName::from_static("x-kept")]));
    let hooks = Router::new()
        .route("/hooks/{team}", post(handler).layer(layer))
        .with_state(seen.clone());
    let router = Router::new().nest("/api", hooks);
    let body = Bytes::from_static(b"\xef\xbb\xbf\x00\xff{}\r\n");
    let sent = TestDelivery::new(&github)
        .uri("/api/hooks/a%20team?x=1&x=%00")
        .header(HeaderName::from_static("x-kept"), "yes")
        .header(HeaderName::from_static("authorization"), "Bearer hunter2")
        .header(HeaderName::from_static("cookie"), "session=hunter2")
        .body(body.clone());
    let request: Request<Body> = sent.request();
    let signature = request.headers()["x-hub-signature-256"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(send(&router, request).await.outcome, "kept");

    let stored: String = sqlx::query_scalar(
        "select string_agg(kept::text || encode(headers, 'escape') || request::text, '')
         from idempotent_webhook.kept_deliveries as kept, idempotent_webhook.kept_requests as request",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    for never in ["hunter2", &signature, "authorization", "cookie", SECRET] {
        assert!(!stored.contains(never), "{never}: {stored}");
    }

    let recovery = recovery.spawn(router);
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let seen = seen.lock().unwrap().clone();
    let [first, second] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (&first.0, &first.1, &first.2),
        (&second.0, &second.1, &second.2)
    );
    assert_eq!(second.0, "a team");
    assert_eq!((&first.4, &second.4), (&body, &body));
    for name in [
        "content-type",
        "x-github-delivery",
        "x-github-event",
        "x-kept",
    ] {
        assert_eq!(first.3[name], second.3[name], "{name}");
    }
    assert!(!second.3.contains_key("authorization"));
    assert_rows!(database, claims: 1, effects: 0);
}

#[tokio::test]
async fn r1_a_forged_request_leaves_nothing() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
    for forged in [github_delivery().tampered(), github_delivery().unsigned()] {
        assert_eq!(app.send(forged.request()).await.outcome, "rejected");
    }
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r1_a_state_that_is_unknown_or_without_a_time_is_refused_by_the_table() {
    let database = Database::new().await;
    for (state, time) in [
        ("'undone'", "now()"),
        ("'due'", "null"),
        ("null", "now()"),
        ("'processed'", "null"),
    ] {
        let insert = format!(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('test', 'a', {state}, 1, {time})"
        );
        let refused = database.pool.execute(sqlx::raw_sql(AssertSqlSafe(insert)));
        assert!(refused.await.is_err(), "{state} {time}");
    }
}

#[tokio::test]
async fn r3_a_body_over_the_limit_is_recorded_and_not_kept_which_is_logged() {
    let set = |keep: Keep| keep.body_limit(10);
    let app = TestApp::keeping(set, Failing::times(9).handler()).await;
    assert_eq!(app.send(github("a", "0123456789")).await.outcome, "kept");
    let log = logged(async {
        assert_eq!(app.send(github("b", "0123456789a")).await.outcome, "failed");
    })
    .await;
    assert!(
        log.contains("its body is larger than `Keep::body_limit`"),
        "{log}"
    );
    let listed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
    let states: Vec<_> = listed.iter().map(|kept| kept.state).collect();
    assert_eq!(states, [KeptState::Due, KeptState::Recorded]);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Compressing a body takes at least as long as writing it.
#[tokio::test]
async fn r3_bodies_are_not_compressed_and_small_ones_are_in_the_row() {
    let app = TestApp::keeping(|keep| keep, Failing::times(99).handler()).await;
    for (length, apart) in [(7_000, false), (20_000, true)] {
        let answer = app.send(github("id", "x".repeat(length))).await;
        assert_eq!(answer.outcome, "kept");
        let stored: (i32, bool) = sqlx::query_as(
            "select pg_column_size(body), pg_relation_size(reltoastrelid) > 0
             from idempotent_webhook.kept_requests, pg_class
             where pg_class.oid = 'idempotent_webhook.kept_requests'::regclass",
        )
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
        assert!(usize::try_from(stored.0).unwrap() >= length);
        assert_eq!(stored.1, apart);
        assert_eq!(
            endpoint(&app)
                .discard_all(&Filter::new())
                .await
                .unwrap()
                .changed,
            1
        );
    }
    app.database.until(NOTHING_KEPT).await;
}

/// The tenant is part of the key, and the tenant's secrets no longer exist when the delivery runs
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_kept_delivery_is_not_verified_again() {
    let is_known = Arc::new(AtomicBool::new(true));
    let secrets = TenantSecrets::new(|head| head.uri.query().map(str::to_owned), {
        let is_known = is_known.clone();
        move |_| {
            let is_known = is_known.load(Ordering::Relaxed);
            async move {
                let secrets = is_known.then(|| Secret::new(SECRET)).transpose()?;
                Ok(secrets.map(Secrets::new))
            }
        }
    })
    .cache(0, Duration::ZERO)
    .separate_ids();
    let set = |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(keep(recovery));
    let github = presets::github(secrets);
    let app = TestApp::recovered(github, set, Failing::times(2).handler()).await;
    for tenant in ["/?acme", "/?globex"] {
        let sent = github_delivery().uri(tenant);
        assert_eq!(app.send(sent.request()).await.outcome, "kept");
    }
    is_known.store(false, Ordering::Relaxed);
    let sent = github_delivery().uri("/?acme");
    assert_eq!(app.send(sent.request()).await.outcome, "rejected");
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 2, effects: 2);
    let tenants: Vec<String> =
        sqlx::query_scalar("select tenant from idempotent_webhook.deliveries order by 1")
            .fetch_all(&app.database.pool)
            .await
            .unwrap();
    assert_eq!(tenants, ["acme", "globex"]);
}

/// A deploy has lowered the limit in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_body_that_was_accepted_once_is_not_too_large_later() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
    let body = vec![b' '; 3000];
    assert_eq!(app.send(github("a", body)).await.outcome, "kept");
    let pool = app.database.pool.clone();
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()).body_limit(10));
    let layer = layer.keep(keep(&recovery));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    let recovery = recovery.spawn(router);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_row_that_stays_behind_ends_as_a_duplicate() {
    let failing = Failing::times(1);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let listed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
    assert!(listed.is_empty(), "it is processed: {listed:?}");

    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 1]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r5_a_delivery_outlives_what_is_kept_of_it() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(1).await;
    app.database.has_window("test", "3 days").await;
    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             values ('test', 'due-1', now() - interval '9 years');
             update idempotent_webhook.kept_deliveries
             set last_failed_at = now() - interval '9 years', taken_by = 1",
        )
        .await;
    let pool = &app.database.pool;
    assert_eq!(
        prune(pool, YEAR).await.unwrap().deliveries,
        0,
        "an attempt may be running"
    );
    app.database
        .run("update idempotent_webhook.kept_deliveries set taken_by = null")
        .await;
    // The delivery is processed, so its kept row is obsolete. Retention deletes the row first, and
    // then the delivery.
    assert_eq!(prune(pool, YEAR).await.unwrap().deliveries, 1);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r5_what_was_forgotten_does_not_run_by_itself() {
    let app = TestApp::keeping(|keep| keep, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let is_forgotten = endpoint(&app).forget("a").await.unwrap();
    assert!(!is_forgotten, "it is not processed");
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert!(endpoint(&app).forget("a").await.unwrap());
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 1);
}

#[tokio::test]
async fn r14_a_kept_delivery_is_acknowledged_if_asked_for() {
    for way in [Keep::failed, Keep::all] {
        let set =
            |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(way(recovery).acknowledge());
        let github_preset = presets::github(secret());
        let app = TestApp::recovered(github_preset, set, Failing::times(9).handler()).await;
        let log = logged(async {
            assert_eq!(app.send(github("a", "{}")).await, answer(200, "kept", ""));
        })
        .await;
        assert!(
            log.contains("webhook rolled back") && log.contains("not yet"),
            "{log}"
        );
        assert_kept!(app.database, "due", attempts: 1, retries: 0);

        app.database
            .run("alter table idempotent_webhook.kept_requests rename to gone")
            .await;
        let refused = app.send(github("b", "{}")).await;
        assert!(refused.status >= 500, "{refused:?}");
        assert_eq!(refused.outcome, "failed");
        assert_kept!(app.database, "due", attempts: 1, retries: 0);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_delivery_is_accepted_first_and_handled_in_the_background() {
    let failing = Failing::times(1);
    let app = keeping_by(keep_accepted, failing.handler()).await;
    let accepted = answer(200, "accepted", "");
    assert_eq!(app.send(github("a", "{}")).await, accepted);
    let due = "exists (
        select from idempotent_webhook.kept_deliveries
        where state = 'due' and taken_by is null and reason = 'not yet'
    )";
    app.database.until(due).await;
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.send(github("a", "{}")).await, accepted);

    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    let duplicate = answer(200, "duplicate", "");
    assert_eq!(app.send(github("a", "{}")).await, duplicate);
    // The first attempt is also made at once if no recovery is running.
    recovery.stop().await;
    assert_eq!(app.send(github("b", "{}")).await, accepted);
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(failing.attempts(), [1, 2, 1]);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_delivery_that_comes_again_is_run_at_once_even_if_it_was_dead() {
    for (delays, has_failed) in [
        (vec![HOUR, HOUR], due_after("30 minutes")),
        (vec![], ONE_DEAD.to_owned()),
    ] {
        let failing = Failing::times(1);
        let way = |recovery: &Recovery| Keep::accepted(recovery).retry_delays(delays);
        let app = keeping_by(way, failing.handler()).await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
        app.database.until(&has_failed).await;
        app.database.insert_due(1).await;
        let recovery = app.recovery.clone().poll_interval(HOUR);
        let recovery = recovery.spawn(app.router.clone());
        // Recovery has run all due deliveries, and waits for more.
        let only_a = "not exists (
            select from idempotent_webhook.kept_deliveries where delivery_id <> 'a'
        )";
        app.database.until(only_a).await;
        app.settled().await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
        assert_eq!(
            failing.attempts(),
            [1, 2, 2],
            "the attempt at the other delivery is between them"
        );
        assert_rows!(app.database, claims: 2, effects: 2);
    }
}

/// Keeps, recovers and accepts deliveries with this pool, and runs operations on them. Asserts that
/// each of these works.
pub async fn works_on(database: &Database, pool: PgPool) {
    let failing = Failing::times(3);
    let recovery = Recovery::new(pool.clone());
    let route = |endpoint: &str, keep: Keep| {
        let layer = IdempotentWebhook::new(pool.clone(), endpoint, presets::github(secret()));
        post(failing.handler()).layer(layer.keep(keep.retry_delays([SOON; 3])))
    };
    let archived = Keep::all(&recovery).processed_for(HOUR);
    let router = Router::new()
        .route("/failed", route("failed", Keep::failed(&recovery)))
        .route("/all", route("all", archived))
        .route("/accepted", route("accepted", Keep::accepted(&recovery)));
    let sent = |uri: &str| github_delivery().uri(uri).request();
    for uri in ["/failed", "/failed", "/all"] {
        assert_eq!(send(&router, sent(uri)).await, answer(500, "kept", ""));
    }
    let accepted = answer(200, "accepted", "");
    assert_eq!(send(&router, sent("/accepted")).await, accepted);
    let recovery = recovery.spawn(router);
    let only_the_archive = "1 = (select count(*) from idempotent_webhook.kept_deliveries)
        and 1 = (
            select count(*) from idempotent_webhook.kept_deliveries where state = 'processed'
        )";
    database.until(only_the_archive).await;
    assert_rows!(database, claims: 3, effects: 3);
    let of_all = Endpoint::new(pool.clone(), "all");
    assert_eq!(
        of_all.reprocess_all(&Filter::new()).await.unwrap().changed,
        1
    );
    database.until("4 = (select count(*) from effects)").await;
    recovery.stop().await;
    let archived = Filter::new().state(KeptState::Processed);
    assert_eq!(of_all.kept(&archived, None, 9).await.unwrap().len(), 1);
    assert_rows!(database, claims: 3, effects: 4);
    let of = Endpoint::new(pool, "failed");
    of.pause().await.unwrap();
    of.resume().await.unwrap();
    assert!(of.kept(&Filter::new(), None, 1).await.unwrap().is_empty());
    assert_eq!(of.retry_all(&Filter::new()).await.unwrap().changed, 0);
    assert_eq!(of.discard("a").await.unwrap(), Discarded::NotKept);
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_recovery_works_at_any_default_isolation_level() {
    for isolation in ["repeatable read", "serializable"] {
        let database = Database::new().await;
        let options = database.options();
        let options = options.options([("default_transaction_isolation", isolation)]);
        works_on(&database, PgPool::connect_lazy_with(options)).await;
    }
}

/// The role has only the rights that `migrate` documents.
#[tokio::test(flavor = "multi_thread")]
async fn r17_recovery_works_for_a_role_with_the_documented_rights() {
    let database = Database::new().await;
    let role = format!("recovering_{}", database.name);
    database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role};
             grant select, insert, update, delete on all tables in schema idempotent_webhook
                 to {role};
             grant insert on effects to {role}"
        ))
        .await;
    let options = database.options().username(&role);
    let pool = PgPool::connect_lazy_with(options);
    works_on(&database, pool.clone()).await;
    pool.close().await;
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}
