//! R1 to R17: a delivery that failed is kept, and run again until it is processed or dead.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::recovery::{Filter, KeptState, RecoveryTask, Retried};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Recovery, Secret, Secrets,
    TenantSecrets, presets, prune,
};

use crate::recovery_field::ONE_WAITS_FOR_A_LOCK;
use crate::support::{
    Database, SECRET, TestApp, answer, assert_rows, github, github_delivery, insert_effect,
    let_pass, logged, secret, send, soon, spawn_send, write_effect,
};

pub const SOON: Duration = Duration::from_millis(20);

/// Short delays, four attempts in all.
pub fn keep(layer: IdempotentWebhook) -> IdempotentWebhook {
    layer.keep_failed().retry_delays([SOON, SOON, SOON])
}

pub type Answered = Pin<Box<dyn Future<Output = Result<StatusCode, HandlerError>> + Send>>;

/// A handler that writes one effect and fails a number of times, at whatever delivery. It notes the
/// attempt of each run.
#[derive(Clone, Default)]
pub struct Failing {
    left: Arc<AtomicU32>,
    attempts: Arc<Mutex<Vec<u32>>>,
}

impl Failing {
    pub fn times(times: u32) -> Self {
        Self {
            left: Arc::new(times.into()),
            attempts: Arc::default(),
        }
    }

    pub fn handler(
        &self,
    ) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
        let this = self.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let this = this.clone();
            Box::pin(async move {
                this.attempts.lock().unwrap().push(delivery.attempt());
                insert_effect(&mut tx, &delivery).await?;
                let left = |left: u32| left.checked_sub(1);
                match this
                    .left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                {
                    Ok(_) => Err(HandlerError::new("not yet")),
                    Err(_) => Ok(StatusCode::OK),
                }
            })
        }
    }

    pub fn attempts(&self) -> Vec<u32> {
        self.attempts.lock().unwrap().clone()
    }
}

pub fn recover(app: &TestApp) -> RecoveryTask {
    Recovery::new(app.database.pool.clone(), app.router.clone())
        .poll_interval(Duration::from_millis(200))
        .spawn()
}

pub fn endpoint(app: &TestApp) -> Endpoint {
    Endpoint::new(app.database.pool.clone(), "test")
}

pub const NOTHING_KEPT: &str = "not exists (select from idempotent_webhook.kept_deliveries)
     and not exists (select from idempotent_webhook.kept_requests)";

pub const ONE_DEAD: &str =
    "exists (select from idempotent_webhook.kept_deliveries where state = 'dead')";

/// What is kept of one delivery: state, attempts, and the attempts of the schedule.
pub async fn kept(database: &Database) -> (String, i32, i32) {
    sqlx::query_as("select state, attempts, retries from idempotent_webhook.kept_deliveries")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_failed_delivery_is_kept_and_run_again_until_it_is_processed() {
    let failing = Failing::times(3);
    let app = TestApp::github_with(keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
    assert_rows!(app.database, claims: 0, effects: 0);
    let listed = endpoint(&app).kept(&Filter::new(), 10).await.unwrap();
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
async fn r1_what_the_handler_gets_is_what_the_provider_sent() {
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
    let layer = keep(IdempotentWebhook::new(
        database.pool.clone(),
        "test",
        github.clone(),
    ))
    .keep_headers([HeaderName::from_static("x-kept")]);
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

    let recovery = Recovery::new(database.pool.clone(), router).spawn();
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
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    for forged in [github_delivery().tampered(), github_delivery().unsigned()] {
        assert_eq!(app.send(forged.request()).await.outcome, "rejected");
    }
    app.database.until(NOTHING_KEPT).await;
}

#[tokio::test]
async fn r3_a_body_over_the_limit_is_recorded_and_not_kept() {
    let set = |layer| keep(layer).keep_body_limit(10);
    let app = TestApp::github_with(set, Failing::times(9).handler()).await;
    assert_eq!(app.send(github("a", "0123456789")).await.outcome, "kept");
    assert_eq!(app.send(github("b", "0123456789a")).await.outcome, "failed");
    let listed = endpoint(&app).kept(&Filter::new(), 10).await.unwrap();
    let states: Vec<_> = listed.iter().map(|kept| kept.state).collect();
    assert_eq!(states, [KeptState::Due, KeptState::Recorded]);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_after_the_last_attempt_a_delivery_is_dead_until_it_is_retried() {
    let failing = Failing::times(4);
    let app = TestApp::github_with(keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    assert_eq!(kept(&app.database).await, ("dead".into(), 4, 3));
    assert_eq!(failing.attempts(), [1, 2, 3, 4]);
    let dead = Filter::new()
        .state(KeptState::Dead)
        .reason_contains("not yet");
    let listed = endpoint(&app).kept(&dead, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].status), (1, Some(500)));

    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Due);
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Processed);
    assert_eq!(endpoint(&app).retry("b").await.unwrap(), Retried::Unchanged);
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2, 3, 4, 5]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_handler_says_what_becomes_of_its_delivery() {
    async fn handler(_: DedupeTx, delivery: Delivery) -> Result<(), HandlerError> {
        let error = HandlerError::new(delivery.id());
        Err(match delivery.id().as_str() {
            "dead" => error.dead(),
            "discard" => error.discard(),
            "discard later" if delivery.attempt() > 1 => error.discard(),
            "later" => error.retry_after(Duration::from_secs(3600)),
            _ => error,
        })
    }
    let json = |layer| keep(layer).retry_delays([SOON]);
    let provider = crate::support::acme(idempotent_webhook::Source::json("$.id".parse().unwrap()));
    let app = TestApp::with(provider.clone(), json, handler).await;
    let outcome = async |id: &str| {
        let sent = TestDelivery::new(&provider).id(id);
        app.send(sent.request()).await.outcome
    };
    assert_eq!(outcome("dead").await, "kept");
    assert_eq!(kept(&app.database).await, ("dead".into(), 1, 0));
    assert!(endpoint(&app).discard("dead").await.unwrap());
    assert!(!endpoint(&app).discard("dead").await.unwrap());
    assert_eq!(outcome("discard").await, "failed");
    assert_eq!(outcome("later").await, "kept");
    let later = "exists (
        select from idempotent_webhook.kept_deliveries
        where delivery_id = 'later' and next_attempt_at > now() + interval '50 minutes'
    )";
    app.database.until(later).await;
    assert_eq!(outcome("discard later").await, "kept");
    let recovery = recover(&app);
    let gone = "not exists (
        select from idempotent_webhook.kept_deliveries where delivery_id = 'discard later'
    )";
    app.database.until(gone).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Whoever comes first commits, and the other one finds a duplicate.
#[tokio::test(flavor = "multi_thread")]
async fn r5_the_providers_retry_and_ours_never_both_commit() {
    let failing = Failing::times(20);
    let app = TestApp::github_with(keep, failing.handler()).await;
    for id in 0..20 {
        let id = format!("id-{id}");
        assert_eq!(app.send(github(&id, "{}")).await.outcome, "kept");
    }
    let recovery = recover(&app);
    for id in 0..20 {
        let outcome = app.send(github(&format!("id-{id}"), "{}")).await.outcome;
        assert!(["processed", "duplicate"].contains(&&*outcome), "{outcome}");
    }
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 20, effects: 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_row_that_stays_behind_ends_as_a_duplicate() {
    let failing = Failing::times(1);
    let app = TestApp::github_with(keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let listed = endpoint(&app).kept(&Filter::new(), 10).await.unwrap();
    assert!(listed.is_empty(), "it is processed: {listed:?}");

    // Until then, the row of the delivery stays, however old it is.
    app.database
        .run("update idempotent_webhook.deliveries set received_at = now() - interval '9 years'")
        .await;
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 1]);
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(prune(&app.database.pool, year).await.unwrap().deliveries, 1);
}

#[tokio::test]
async fn r5_a_delivery_outlives_what_is_kept_of_it() {
    let app = TestApp::github_with(keep, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    app.database
        .run(
            "update idempotent_webhook.deliveries set received_at = now() - interval '9 years';
             update idempotent_webhook.kept_deliveries
             set last_failed_at = now() - interval '9 years',
                 running_until = now() + interval '1 hour'",
        )
        .await;
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    let pool = &app.database.pool;
    assert_eq!(
        prune(pool, year).await.unwrap().deliveries,
        0,
        "an attempt may be running"
    );
    app.database
        .run("update idempotent_webhook.kept_deliveries set running_until = null")
        .await;
    // What is kept is obsolete, so it goes first, and then the delivery.
    assert_eq!(prune(pool, year).await.unwrap().deliveries, 1);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 1);
}

#[tokio::test]
async fn r5_what_was_forgotten_does_not_run_by_itself() {
    let app = TestApp::github_with(keep, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert!(
        !endpoint(&app).forget("a").await.unwrap(),
        "it is not processed"
    );
    assert_eq!(kept(&app.database).await.0, "due");
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert!(endpoint(&app).forget("a").await.unwrap());
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 1);
}

/// As if the process had been killed in the midst of an attempt.
#[tokio::test(flavor = "multi_thread")]
async fn r6_an_attempt_that_did_not_end_is_counted_and_taken_over() {
    let failing = Failing::times(1);
    let app = TestApp::github_with(keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set attempts = 3, retries = 2, running_until = now() + interval '300 ms'",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 4]);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_a_route_that_is_gone_costs_no_attempt() {
    let failing = Failing::times(1);
    let app = TestApp::github_with(keep, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let pool = app.database.pool.clone();
    let elsewhere = Router::new().route("/another", post(write_effect));
    let recovery = Recovery::new(pool, elsewhere).spawn();
    let deferred = "exists (
        select from idempotent_webhook.kept_deliveries
        where running_until is null and next_attempt_at > now() + interval '50 seconds'
    )";
    app.database.until(deferred).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_eq!(failing.attempts(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_process_leaves_endpoints_alone_that_it_does_not_serve() {
    let app = TestApp::github_with(keep, Failing::times(9).handler()).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('another', 'a', 'due', 1, now());
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('another', 'a', 1, 'POST', '/', '', '{}')",
        )
        .await;
    assert_eq!(app.send(github("b", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    let another: (String, i32) = sqlx::query_as(
        "select state, attempts from idempotent_webhook.kept_deliveries where delivery_id = 'a'",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(another, ("due".into(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_an_endpoint_is_paused_and_resumed() {
    let app = TestApp::github_with(keep, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    endpoint(&app).pause().await.unwrap();
    let recovery = recover(&app);
    tokio::time::sleep(10 * SOON).await;
    let listed = endpoint(&app).kept(&Filter::new(), 10).await.unwrap();
    assert_eq!(
        (listed[0].state, listed[0].attempts),
        (KeptState::Paused, 1)
    );
    for (state, number) in [(KeptState::Due, 0), (KeptState::Paused, 1)] {
        let filter = Filter::new().state(state);
        let listed = endpoint(&app).kept(&filter, 10).await.unwrap();
        assert_eq!(listed.len(), number, "{state:?}");
    }
    endpoint(&app).resume().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_failures_in_a_row_cost_probes_and_not_attempts() {
    let failing = Failing::times(30 + 8);
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([SOON; 4]);
    let app = TestApp::github_with(set, failing.handler()).await;
    for id in 0..30 {
        let id = format!("id-{id}");
        assert_eq!(app.send(github(&id, "{}")).await.outcome, "kept");
    }
    let recovery = Recovery::new(app.database.pool.clone(), app.router.clone())
        .breaker(5, Duration::from_millis(300))
        .concurrency(1)
        .spawn();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    // Five to open it, then probes, of which the first success closes it.
    assert_eq!(failing.attempts().len(), 30 + 8 + 30);
    assert_rows!(app.database, claims: 30, effects: 30);
}

#[tokio::test]
async fn r14_a_kept_delivery_is_acknowledged_if_asked_for() {
    let set = |layer| keep(layer).acknowledge_kept();
    let app = TestApp::github_with(set, Failing::times(9).handler()).await;
    let log = logged(async {
        assert_eq!(app.send(github("a", "{}")).await, answer(200, "kept", ""));
    })
    .await;
    assert!(
        log.contains("webhook rolled back") && log.contains("not yet"),
        "{log}"
    );
    assert_rows!(app.database, claims: 0, effects: 0);

    app.database
        .run("alter table idempotent_webhook.kept_requests rename to gone")
        .await;
    assert_eq!(app.send(github("b", "{}")).await, answer(500, "failed", ""));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_delivery_is_accepted_first_and_handled_in_the_background() {
    let failing = Failing::times(1);
    let set = |layer| keep(layer).accept_first();
    let app = TestApp::github_with(set, failing.handler()).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "accepted", "")
    );
    let due = "exists (
        select from idempotent_webhook.kept_deliveries
        where state = 'due' and running_until is null and reason = 'not yet'
    )";
    app.database.until(due).await;
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "accepted", "")
    );

    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    // Without recovery, too, the first attempt is made at once.
    recovery.stop().await;
    assert_eq!(app.send(github("b", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(failing.attempts(), [1, 2, 1]);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_what_cannot_be_kept_is_not_accepted() {
    let set = |layer: IdempotentWebhook| keep(layer).accept_first().keep_body_limit(10);
    let app = TestApp::github_with(set, Failing::times(0).handler()).await;
    let large = github("large", "0123456789a");
    assert_eq!(app.send(large).await.outcome, "processed");
    app.database
        .run("alter table idempotent_webhook.kept_requests rename to gone")
        .await;
    let refused = app.send(github("a", "{}")).await;
    assert_eq!((refused.status, &*refused.outcome), (503, "failed"));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A dead delivery that its provider sends again gets another chance.
#[tokio::test(flavor = "multi_thread")]
async fn r15_a_dead_delivery_that_comes_again_is_accepted_again() {
    let failing = Failing::times(1);
    let set = |layer: IdempotentWebhook| layer.accept_first().retry_delays([]);
    let app = TestApp::github_with(set, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    app.database.until(ONE_DEAD).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(failing.attempts().len(), 2);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The tenant is part of the key, and its secrets are gone when the delivery is run again.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_kept_delivery_is_not_verified_again() {
    let known = Arc::new(AtomicU32::new(1));
    let secrets = TenantSecrets::new(|head| head.uri.query().map(str::to_owned), {
        let known = known.clone();
        move |_| {
            let known = known.load(Ordering::Relaxed) == 1;
            async move {
                let secrets = known.then(|| Secret::new(SECRET)).transpose()?;
                Ok(secrets.map(Secrets::new))
            }
        }
    })
    .cache(0, Duration::ZERO)
    .separate_ids();
    let failing = Failing::times(2);
    let github = presets::github(secrets);
    let app = TestApp::with(github, keep, failing.handler()).await;
    for tenant in ["/?acme", "/?globex"] {
        let sent = github_delivery().uri(tenant);
        assert_eq!(app.send(sent.request()).await.outcome, "kept");
    }
    known.store(0, Ordering::Relaxed);
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

#[tokio::test(flavor = "multi_thread")]
async fn r13_many_are_retried_at_once() {
    let failing = Failing::times(10);
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([]);
    let app = TestApp::github_with(set, failing.handler()).await;
    for id in 0..10 {
        let id = format!("id-{id}");
        assert_eq!(app.send(github(&id, "{}")).await.outcome, "kept");
    }
    let of = endpoint(&app);
    let none = Filter::new().event_type("pull_request");
    assert_eq!(of.retry_all(&none).await.unwrap(), 0);
    let pushes = Filter::new().event_type("push").state(KeptState::Dead);
    assert_eq!(of.retry_all(&pushes).await.unwrap(), 10);
    assert_eq!(of.retry_all(&Filter::new()).await.unwrap(), 0);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 10, effects: 10);
}

/// Keeps, recovers, accepts and operates on a pool, and asserts that each works.
pub async fn works_on(database: &Database, pool: sqlx::PgPool) {
    let failing = Failing::times(2);
    let handler = failing.handler();
    let kept = keep(IdempotentWebhook::new(
        pool.clone(),
        "kept",
        presets::github(secret()),
    ));
    let accepted = IdempotentWebhook::new(pool.clone(), "accepted", presets::github(secret()))
        .accept_first()
        .retry_delays([SOON]);
    let router = Router::new()
        .route("/kept", post(handler.clone()).layer(kept))
        .route("/accepted", post(handler).layer(accepted));
    let sent = |uri: &str| github_delivery().uri(uri).request();
    assert_eq!(send(&router, sent("/kept")).await.outcome, "kept");
    assert_eq!(send(&router, sent("/kept")).await.outcome, "kept");
    assert_eq!(send(&router, sent("/accepted")).await.outcome, "accepted");
    let recovery = Recovery::new(pool.clone(), router).spawn();
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(database, claims: 2, effects: 2);
    let of = Endpoint::new(pool.clone(), "kept");
    of.pause().await.unwrap();
    of.resume().await.unwrap();
    assert!(of.kept(&Filter::new(), 1).await.unwrap().is_empty());
    assert_eq!(of.retry_all(&Filter::new()).await.unwrap(), 0);
    assert!(!of.discard("a").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_recovery_works_at_any_default_isolation_level() {
    for isolation in ["repeatable read", "serializable"] {
        let database = Database::new().await;
        let options = database
            .options()
            .await
            .options([("default_transaction_isolation", isolation)]);
        works_on(&database, sqlx::PgPool::connect_lazy_with(options)).await;
    }
}

/// With the rights that `migrate` documents, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn r17_recovery_works_for_a_role_with_the_documented_rights() {
    let database = Database::new().await;
    let role = format!("recovering_{}", database.name);
    database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role};
             grant select, insert, delete on all tables in schema idempotent_webhook to {role};
             grant update on idempotent_webhook.kept_deliveries, idempotent_webhook.kept_endpoints
                 to {role};
             grant insert on effects to {role}"
        ))
        .await;
    let options = database.options().await.username(&role);
    let pool = sqlx::PgPool::connect_lazy_with(options);
    works_on(&database, pool.clone()).await;
    pool.close().await;
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}

/// A layer on another database is none of its business; a mistake in the pool is heard of.
#[tokio::test]
async fn recovery_without_a_layer_is_a_warning() {
    let database = Database::new().await;
    let pool = database.pool.clone();
    let log = logged(async {
        let recovery = Recovery::new(pool, Router::<()>::new()).spawn();
        tokio::time::sleep(5 * SOON).await;
        recovery.stop().await;
    })
    .await;
    assert!(log.contains("no layer with `keep_failed`"), "{log}");
}

/// To compress a body takes as long as to write it, or longer.
#[tokio::test]
async fn r3_bodies_are_not_compressed_and_small_ones_are_in_the_row() {
    let app = TestApp::github_with(keep, Failing::times(99).handler()).await;
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
        assert_eq!(endpoint(&app).discard_all(&Filter::new()).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn r3_no_more_is_kept_than_the_quota_allows() {
    for quota in [(3, 1_000_000), (1_000, 30)] {
        let set = move |layer| keep(layer).keep_quota(quota.0, quota.1);
        let app = TestApp::github_with(set, Failing::times(99).handler()).await;
        for id in 0..3 {
            let answer = app.send(github(&format!("id-{id}"), "0123456789")).await;
            assert_eq!(answer.outcome, "kept");
        }
        // Another process finds it full at once, this one within seconds.
        let elsewhere = app.elsewhere_with(set, Failing::times(99).handler()).await;
        assert_eq!(send(&elsewhere, github("b", "{}")).await.outcome, "failed");
        let accepting = move |layer| set(layer).accept_first();
        let accepting = app.elsewhere_with(accepting, write_effect).await;
        let refused = send(&accepting, github("c", "{}")).await;
        assert_eq!((refused.status, &*refused.outcome), (503, "failed"));
        assert_rows!(app.database, claims: 0, effects: 0);
        assert_eq!(
            endpoint(&app).kept(&Filter::new(), 10).await.unwrap().len(),
            3
        );
    }
}

/// What needs no further row is handled as before.
#[tokio::test]
async fn r3_a_full_quota_refuses_nothing_that_is_known() {
    let set = |layer| keep(layer).acknowledge_kept().keep_quota(1, 1_000_000);
    let app = TestApp::github_with(set, Failing::times(2).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(200, "kept", ""));
    // As another process, which finds it full at once.
    let elsewhere = app.elsewhere_with(set, Failing::times(9).handler()).await;
    let unknown = send(&elsewhere, github("b", "{}")).await;
    assert_eq!(unknown, answer(500, "failed", ""));
    let known = send(&elsewhere, github("a", "{}")).await;
    assert_eq!(known, answer(200, "kept", ""));
    assert_eq!(kept(&app.database).await, ("due".into(), 2, 0));

    let processing = app.elsewhere(write_effect).await;
    assert_eq!(
        send(&processing, github("c", "{}")).await.outcome,
        "processed"
    );
    let accepting = move |layer| set(layer).accept_first();
    let accepting = app.elsewhere_with(accepting, write_effect).await;
    let unknown = send(&accepting, github("d", "{}")).await;
    assert_eq!((unknown.status, &*unknown.outcome), (503, "failed"));
    let processed = send(&accepting, github("c", "{}")).await;
    assert_eq!(processed, answer(200, "duplicate", ""));
    app.database
        .run("update idempotent_webhook.kept_deliveries set state = 'dead'")
        .await;
    let dead = send(&accepting, github("a", "{}")).await;
    assert_eq!(dead, answer(200, "accepted", ""));
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// A quota that was full some time ago refuses nobody: all wait for the next check.
#[tokio::test]
async fn r3_room_after_a_full_quota_is_found_by_all_of_a_burst() {
    let set = |layer| keep(layer).accept_first().keep_quota(1, 1_000_000);
    let app = TestApp::github_with(set, write_effect).await;
    let endpoint = endpoint(&app);
    endpoint.pause().await.unwrap();
    assert_eq!(app.send(github("a", "{}")).await.outcome, "accepted");
    let_pass(Duration::from_secs(6)).await;
    assert_eq!(app.send(github("b", "{}")).await.status, 503);
    assert_eq!(endpoint.discard_all(&Filter::new()).await.unwrap(), 1);
    let_pass(Duration::from_secs(6)).await;
    let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.kept_deliveries")
        .execute(&mut *locked)
        .await
        .unwrap();
    let sent: Vec<_> = (0..5)
        .map(|id| spawn_send(&app.router, github(&id.to_string(), "{}")))
        .collect();
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    drop(locked);
    for sent in sent {
        assert_eq!(soon(sent).await.unwrap(), answer(200, "accepted", ""));
    }
    assert_eq!(endpoint.kept(&Filter::new(), 9).await.unwrap().len(), 5);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_a_burst_after_a_start_counts_once_what_is_kept() {
    let app = TestApp::github_with(keep, write_effect).await;
    endpoint(&app).pause().await.unwrap();
    let accepting = |layer| keep(layer).accept_first();
    let accepting = app.elsewhere_with(accepting, write_effect).await;
    let mut locked = app.database.another_pool(1).await.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.kept_deliveries")
        .execute(&mut *locked)
        .await
        .unwrap();
    let sent: Vec<_> = (0..10)
        .map(|id| spawn_send(&accepting, github(&id.to_string(), "{}")))
        .collect();
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    // Long enough for others to get there.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let counting: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(counting, 1);
    drop(locked);
    for sent in sent {
        assert_eq!(soon(sent).await.unwrap().outcome, "accepted");
    }
    let kept = endpoint(&app).kept(&Filter::new(), 100).await.unwrap();
    assert_eq!(kept.len(), 10);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_a_dead_delivery_is_reported_once() {
    let dead = Arc::new(Mutex::new(Vec::new()));
    let set = {
        let dead = dead.clone();
        move |layer| {
            keep(layer).on_dead(move |delivery: &Delivery, reason: &str| {
                let report = (
                    delivery.id().to_string(),
                    delivery.attempt(),
                    reason.to_owned(),
                );
                dead.lock().unwrap().push(report);
                panic!("a hook may panic");
            })
        }
    };
    let app = TestApp::github_with(set, Failing::times(99).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    // A retry of the provider fails as well, and it stays dead.
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(kept(&app.database).await, ("dead".into(), 5, 3));
    assert_eq!(
        *dead.lock().unwrap(),
        [("a".to_owned(), 4, "not yet".to_owned())]
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}
