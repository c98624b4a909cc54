//! Unusual requests, rows, answers and schedules: each is kept and run unchanged, or has a documented outcome.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, MatchedPath, OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Form, Router};
use idempotent_webhook::recovery::{Filter, KeptDelivery};
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, Secret, presets,
};

use crate::support::{
    Answered, Database, Failing, NOTHING_KEPT, ONE_DEAD, Process, SECRET, TestApp, answer,
    assert_kept, assert_rows, due_after, endpoint, github, github_delivery, insert_effect, keep,
    keep_all, keeping_by, logged, recover, recover_all, recovery, secret, send, soon,
    stripe_delivery, stripe_event, until_logged, write_effect,
};

/// Fails the first attempt at each delivery, and notes what the handler got.
fn noting<T: Clone + Send + Sync + 'static>(
    seen: &Arc<Mutex<Vec<T>>>,
    got: T,
    delivery: &Delivery,
) -> StatusCode {
    seen.lock().unwrap().push(got);
    match delivery.attempt() {
        1 => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    }
}

/// Runs kept deliveries until one is dead.
async fn recover_until_dead(app: &TestApp) {
    let recovery = recover(app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
}

/// The only kept delivery, as operators see it.
async fn listed(app: &TestApp) -> KeptDelivery {
    let listed = endpoint(app).kept(&Filter::new(), None, 2).await.unwrap();
    let [listed] = <[_; 1]>::try_from(listed).unwrap();
    listed
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_any_body_is_run_again_byte_by_byte() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = seen.clone();
        move |_: DedupeTx, delivery: Delivery, body: Bytes| {
            std::future::ready(noting(&seen, body, &delivery))
        }
    };
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        layer
            .handler_timeout(Duration::from_secs(60))
            .keep(keep(recovery).body_limit(25 * 1024 * 1024))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    for body in [
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"\xff\xfe not UTF-8 \xc3("),
        Bytes::from_static(b"\xef\xbb\xbf{}\r\n\r\n"),
        // The largest body that GitHub sends.
        every_byte.repeat(25 * 1024 * 4).into(),
    ] {
        seen.lock().unwrap().clear();
        let id = format!("of-{}", body.len());
        let first = app.send(github(&id, body.clone())).await;
        assert_eq!(first, answer(409, "kept", ""));
        recover_all(&app).await;
        let is_same = seen.lock().unwrap().iter().all(|seen| *seen == body);
        assert!(is_same && seen.lock().unwrap().len() == 2, "{id}");
    }
    assert_rows!(app.database, claims: 5, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_form_is_run_again_as_a_form() {
    type Fields = Vec<(String, String)>;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = seen.clone();
        move |_: DedupeTx, delivery: Delivery, Form(fields): Form<Fields>| {
            std::future::ready(noting(&seen, fields, &delivery))
        }
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    let sent = github_delivery()
        .header(
            HeaderName::from_static("content-type"),
            "application/x-www-form-urlencoded",
        )
        .body("payload=%7B%22a%22%3A1%7D&empty=&plus=a+b");
    assert_eq!(app.send(sent.request()).await, answer(409, "kept", ""));
    recover_all(&app).await;
    let fields = [("payload", "{\"a\":1}"), ("empty", ""), ("plus", "a b")];
    let fields: Fields = fields.map(|(a, b)| (a.into(), b.into())).into();
    assert_eq!(*seen.lock().unwrap(), [fields.clone(), fields]);
    assert_rows!(app.database, claims: 1, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_three_hundred_headers_are_run_again_as_they_were() {
    let names: Vec<HeaderName> = (0..300)
        .map(|n| HeaderName::try_from(format!("x-kept-{n}")).unwrap())
        .collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = seen.clone();
        move |_: DedupeTx, delivery: Delivery, headers: HeaderMap| {
            let mut kept = HeaderMap::new();
            for (name, value) in &headers {
                if name.as_str().starts_with("x-kept-") {
                    kept.append(name.clone(), value.clone());
                }
            }
            std::future::ready(noting(&seen, kept, &delivery))
        }
    };
    let named = names.clone();
    let app = TestApp::keeping(|keep| keep.headers(named), handler).await;
    let mut request: Request<Body> = github_delivery().request();
    for (n, name) in names.iter().enumerate() {
        let values: [&[u8]; 3] = [b"", b"a: b, c", b"\xf0\x9f\x8e\x82\t\xff"];
        for value in &values[..=n % 3] {
            let value = HeaderValue::from_bytes(value).unwrap();
            request.headers_mut().append(name.clone(), value);
        }
    }
    assert_eq!(app.send(request).await, answer(409, "kept", ""));
    recover_all(&app).await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen.len(), seen[0].len()), (2, 600));
    assert_eq!(seen[0], seen[1]);
    assert_rows!(app.database, claims: 1, effects: 0);
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
    let recovery = recovery(&database.pool);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let seen = Seen::default();
    let hooks = Router::new()
        .route(
            "/hooks/{team}",
            post(handler).layer(layer.keep(keep(&recovery))),
        )
        .with_state(seen.clone());
    let router = Router::new().nest("/api", Router::new().nest("/v1", hooks));
    let address = SocketAddr::from(([192, 0, 2, 1], 4321));
    let sent = github_delivery().uri("/api/v1/hooks/a%20team?x=1&x=%F0%9F%8E%82");
    let mut request: Request<Body> = sent.request();
    request.extensions_mut().insert(ConnectInfo(address));
    assert_eq!(send(&router, request).await, answer(409, "kept", ""));

    let recovery = recovery
        .prepare_request(move |head| {
            head.extensions.insert(ConnectInfo(address));
        })
        .spawn(router);
    database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let seen = seen.lock().unwrap().clone();
    let as_sent = "a team /api/v1/hooks/{team} /api/v1/hooks/a%20team?x=1&x=%F0%9F%8E%82 \
                   [(\"x\", \"1\"), (\"x\", \"🎂\")] 192.0.2.1:4321";
    assert_eq!(seen, [as_sent; 2]);
    assert_rows!(database, claims: 1, effects: 0);
}

/// Stripe's tolerance is five minutes, and the secret has been replaced in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn r4_a_delivery_is_run_a_day_later_with_another_secret() {
    let stripe = presets::stripe(secret());
    let set = |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(keep(recovery));
    let app = TestApp::recovered(stripe, set, Failing::times(9).handler()).await;
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
    let pool = app.database.another_pool(5).await;
    let process = Process::of(rotated, pool, keep, write_effect);
    let refused = send(&process.router, sent.request()).await;
    assert_eq!(refused.outcome, "rejected");
    let recovery = process.recover();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r4_no_header_of_a_client_skips_the_verification() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
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
            let refused = (refused.status, &*refused.outcome);
            assert_eq!(refused, (401, "rejected"), "{name}");
        }
    }
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r2_no_column_of_any_table_has_a_credential_of_the_request() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
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
    // The settings contain the name of the signature header, which does not come from a request.
    let dump = app.database.dump(&["endpoint_settings"]).await;
    assert!(
        dump.has("x-github-delivery"),
        "the kept headers are missing"
    );
    for never in ["hunter", SECRET, &signature, "x-hub-signature-256"] {
        assert!(!dump.has(never), "{never}");
    }
    for (name, _) in credentials {
        assert!(!dump.has(name), "{name}");
    }
}

/// A request in an unknown format waits for a version that knows the format. This costs no attempt, and other
/// deliveries do not wait.
#[tokio::test(flavor = "multi_thread")]
async fn r3_a_row_of_a_format_that_is_not_known_is_given_back() {
    let failing = Failing::times(2);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    assert_eq!(app.send(github("later", "{}")).await.outcome, "kept");
    app.database
        .run("update idempotent_webhook.kept_requests set format = 2")
        .await;
    app.send(github("b", "{}")).await;
    let recovery = recover(&app);
    let b_is_done = "not exists (
        select from idempotent_webhook.kept_deliveries where delivery_id = 'b'
    )";
    app.database.until(b_is_done).await;
    app.database.until(&due_after("50 seconds")).await;
    recovery.stop().await;
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    assert_eq!(failing.attempts(), [1, 1, 2]);

    app.database
        .run("update idempotent_webhook.kept_requests set format = 1")
        .await;
    app.database.make_due().await;
    recover_all(&app).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn k4b_deliveries_in_a_format_that_is_not_known_are_a_warning() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(3).await;
    app.database
        .run(
            "update idempotent_webhook.kept_requests set format = 2 where delivery_id <> 'due-1';
             update idempotent_webhook.kept_deliveries
             set next_attempt_at = now() - interval '2 minutes'",
        )
        .await;
    let log = logged(async {
        let recovery = recover(&app);
        until_logged("webhook problem").await;
        app.database.until("exists (select from effects)").await;
        recovery.stop().await;
    })
    .await;
    let meaning = "or were kept by another version of idempotent-webhook";
    assert!(
        log.contains(r#"problem="unreached""#) && log.contains(meaning),
        "{log}"
    );
    let told = log
        .matches("in a format that this one does not read")
        .count();
    assert_eq!(told, 1, "{log}");
    app.database
        .until(
            "2 = (
                select count(*) from idempotent_webhook.kept_deliveries
                where state = 'due' and attempts = 1 and unreached_at is not null
                    and next_attempt_at > now() + interval '50 seconds'
            )",
        )
        .await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_a_row_that_cannot_be_read_is_dead_and_says_so() {
    for damage in [
        "headers = 'no colon'",
        "headers = E'\\\\xff3a2061'",
        "method = ''",
        "method = 'not a method'",
        "uri = 'not a uri'",
    ] {
        let failing = Failing::times(1);
        let app = TestApp::keeping(|keep| keep, failing.handler()).await;
        app.send(github("a", "{}")).await;
        app.database
            .run(&format!(
                "update idempotent_webhook.kept_requests set {damage}"
            ))
            .await;
        recover_until_dead(&app).await;
        let reason = listed(&app).await.reason.unwrap();
        assert!(reason.contains("cannot be read"), "{damage}: {reason}");
        assert_eq!(failing.attempts(), [1]);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// The kept request was deleted. The delivery ends as dead, and delays no other delivery.
#[tokio::test]
async fn k4b_a_delivery_without_its_request_is_dead() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(3).await;
    app.database
        .run(
            "delete from idempotent_webhook.kept_requests where delivery_id <> 'due-1';
             update idempotent_webhook.kept_deliveries
             set next_attempt_at = now() - interval '2 minutes' where delivery_id <> 'due-1'",
        )
        .await;
    let recovery = recover(&app);
    app.database
        .until("2 = (select count(*) from idempotent_webhook.kept_deliveries where state = 'dead')")
        .await;
    app.database.until("exists (select from effects)").await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Any answer that is not a success is a failure. This includes a 404 or 405, which may come from a route inside the
/// layer.
#[tokio::test(flavor = "multi_thread")]
async fn r1_an_answer_that_is_no_success_is_a_failure_whatever_its_status() {
    for status in [100, 101, 103, 302, 304, 404, 405, 410, 599, 999] {
        let handler = move |mut tx: DedupeTx, delivery: Delivery| async move {
            insert_effect(&mut tx, &delivery).await.unwrap();
            StatusCode::from_u16(status).unwrap()
        };
        let app = TestApp::keeping(|keep| keep, handler).await;
        // Some senders delete the endpoint after a 410.
        let told = if status == 410 { 500 } else { status };
        assert_eq!(app.send(github("a", "{}")).await, answer(told, "kept", ""));
        recover_until_dead(&app).await;
        assert_kept!(app.database, "dead", attempts: 4, retries: 3);
        assert_eq!(listed(&app).await.status, Some(status));
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_an_answer_that_never_ends_holds_nothing_up() {
    async fn endless(mut tx: DedupeTx, delivery: Delivery) -> Response {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let never = futures_util::stream::pending::<Result<Bytes, Infallible>>();
        let status = match delivery.attempt() {
            1 => return StatusCode::CONFLICT.into_response(),
            2 => StatusCode::BAD_GATEWAY,
            _ => StatusCode::OK,
        };
        (status, Body::from_stream(never)).into_response()
    }
    let app = TestApp::keeping(|keep| keep, endless).await;
    for id in ["a", "b", "c"] {
        assert_eq!(app.send(github(id, "{}")).await, answer(409, "kept", ""));
    }
    recover_all(&app).await;
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_a_handler_that_never_answers_uses_up_its_attempts() {
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let layer = layer.handler_timeout(Duration::from_millis(50));
        layer.keep(keep(recovery))
    };
    let hanging = |mut tx: DedupeTx, delivery: Delivery| -> Answered {
        Box::pin(async move {
            insert_effect(&mut tx, &delivery).await?;
            std::future::pending().await
        })
    };
    let app = TestApp::recovered(presets::github(secret()), set, hanging).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(503, "kept", "temporarily unavailable")
    );
    recover_until_dead(&app).await;
    assert_kept!(app.database, "dead", attempts: 4, retries: 3);
    let reason = listed(&app).await.reason.unwrap();
    assert!(reason.contains("took longer"), "{reason}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// After a deploy, the path belongs to another endpoint, or a middleware never answers.
#[tokio::test(flavor = "multi_thread")]
async fn r7_an_attempt_that_reaches_no_layer_of_its_endpoint_is_not_counted() {
    let reroutings: [fn(Router, Router) -> Router; 2] = [
        |route, another| another.nest("/elsewhere", route),
        |route, _| {
            route.layer(map_request(|_: Request<Body>| {
                std::future::pending::<Request<Body>>()
            }))
        },
    ];
    for reroute in reroutings {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| {
            layer
                .handler_timeout(Duration::from_millis(50))
                .in_flight_timeout(Duration::from_millis(50))
                .database_timeout(Duration::from_millis(500))
                .keep(keep(recovery))
        };
        let failing = Failing::times(1);
        let app = TestApp::recovered(presets::github(secret()), set, failing.handler()).await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        let pool = app.database.pool.clone();
        let another = IdempotentWebhook::new(pool, "another", presets::github(secret()))
            .keep(keep(&app.recovery));
        let another = Router::new().route("/", post(write_effect).layer(another));
        let router = reroute(app.router.clone(), another);
        let recovery = app.recovery.clone().spawn(router);
        let deferred = "exists (
            select from idempotent_webhook.kept_deliveries
            where taken_by is null and next_attempt_at > now() + interval '30 seconds'
        )";
        app.database.until(deferred).await;
        recovery.stop().await;
        assert_kept!(app.database, "due", attempts: 1, retries: 0);
        assert_eq!(failing.attempts(), [1]);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// A migration of a newer version of this crate can leave rows that this version cannot read.
#[tokio::test]
async fn a_row_that_cannot_be_read_does_not_keep_the_others_from_being_run() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(3).await;
    let column_is = async |type_: &str, value: &str| {
        let alter = "alter table idempotent_webhook.kept_requests alter column method";
        let alter = format!("{alter} type {type_} using {value}");
        app.database.run(&alter).await;
    };
    column_is("bytea", "convert_to(method, 'utf8')").await;
    let log = logged(async {
        let attempts = soon(app.recovery.run_due(&app.router)).await.unwrap();
        assert!(attempts.is_empty(), "{attempts:?}");
    })
    .await;
    assert_eq!(
        log.matches("cannot read a kept delivery").count(),
        3,
        "{log}"
    );
    column_is("text", "convert_from(method, 'utf8')").await;
    app.database.lose_takers().await;
    let (router, recovery) = app.elsewhere_keeping(|keep| keep, write_effect).await;
    assert_eq!(recovery.run_due(&router).await.unwrap().len(), 3);
    assert_rows!(app.database, claims: 3, effects: 3);
}

/// The body of a handler's answer panics when it is read. The layer answers the sender as after any panic.
#[tokio::test]
async fn r1_an_answer_whose_body_panics_when_it_is_read_is_a_failure_that_is_kept() {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let body = Body::from_stream(futures_util::stream::poll_fn(
            |_| -> std::task::Poll<Option<Result<&str, std::io::Error>>> { panic!("on purpose") },
        ));
        let plain = [(axum::http::header::CONTENT_TYPE, "text/plain")];
        (StatusCode::BAD_GATEWAY, plain, body)
    };
    for way in [keep, keep_all] {
        let app = keeping_by(way, handler).await;
        let sent = app.send(github("a", "{}")).await;
        assert_eq!(sent, answer(500, "kept", "internal error"));
        app.database
            .until(
                "(select reason like '%panicked: on purpose' and state = 'due'
                  from idempotent_webhook.kept_deliveries)",
            )
            .await;
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_schedule_of_zeroes_ends() {
    let set = |keep: Keep| keep.retry_delays([Duration::ZERO; 5]);
    let failing = Failing::times(99);
    let app = TestApp::keeping(set, failing.handler()).await;
    app.send(github("a", "{}")).await;
    recover_until_dead(&app).await;
    assert_eq!(failing.attempts(), [1, 2, 3, 4, 5, 6]);
    assert_kept!(app.database, "dead", attempts: 6, retries: 5);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_schedule_of_years_is_one_of_a_year() {
    let in_a_year = "exists (
        select from idempotent_webhook.kept_deliveries
        where state = 'due' and taken_by is null
            and next_attempt_at between now() + interval '290 days' and now() + interval '440 days'
    )";
    let years = Duration::from_secs(1000 * 365 * 24 * 60 * 60);
    for (delays, attempts) in [([years, years], 1), ([Duration::ZERO, Duration::MAX], 2)] {
        let set = move |keep: Keep| keep.retry_delays(delays);
        let app = TestApp::keeping(set, Failing::times(99).handler()).await;
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        let recovery = recover(&app);
        app.database.until(in_a_year).await;
        recovery.stop().await;
        assert_kept!(app.database, "due", attempts: attempts, retries: attempts - 1);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// With an empty schedule, a failed delivery is dead at once, and its death is reported once.
#[tokio::test]
async fn r8_a_schedule_of_nothing_leaves_it_to_an_operator() {
    let failing = Failing::times(4);
    let app = TestApp::keeping(|keep| keep.retry_delays([]), failing.handler()).await;
    let log = logged(async {
        for _ in 0..3 {
            assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        }
    })
    .await;
    assert_eq!(log.matches("webhook dead").count(), 1, "{log}");
    assert_kept!(app.database, "dead", attempts: 3, retries: 0);
    let recovery = recover(&app);
    for _ in 0..2 {
        endpoint(&app).retry("a").await.unwrap();
        let is_over = "not exists (
            select from idempotent_webhook.kept_deliveries where state = 'due'
        )";
        app.database.until(is_over).await;
    }
    recovery.stop().await;
    // The operator's first retry also fails, and is the only attempt of its schedule.
    assert_eq!(failing.attempts(), [1, 1, 1, 4, 5]);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r8_the_longest_delay_of_a_handler_can_be_stored() {
    let handler = |_: DedupeTx| async {
        Err::<(), _>(HandlerError::new("not yet").retry_after(Duration::MAX))
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
}

#[tokio::test]
async fn r8_what_a_handler_discards_is_not_kept_since_a_failure_before() {
    let runs = Arc::new(AtomicU32::new(0));
    let handler = move |_: DedupeTx| {
        let first = runs.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let error = HandlerError::new("no such account");
            Err::<(), _>(if first { error } else { error.discard() })
        }
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_eq!(app.send(github("a", "{}")).await.outcome, "failed");
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The provider's retry has a smaller body, so it can be kept.
#[tokio::test(flavor = "multi_thread")]
async fn r8_what_was_too_large_the_first_time_is_kept_once_it_is_not() {
    let failing = Failing::times(2);
    let app = TestApp::keeping(|keep| keep.body_limit(10), failing.handler()).await;
    let too_large = app.send(github("a", "0123456789a")).await;
    assert_eq!(too_large, answer(500, "failed", ""));
    assert_kept!(app.database, "recorded", attempts: 1, retries: 0);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert!(listed(&app).await.next_attempt_at.is_some());
    recover_all(&app).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r1_a_reason_that_postgres_cannot_hold_is_kept_without_what_is_wrong() {
    let reason = format!("\0a\u{1f382}\0{}", "é".repeat(5000));
    let handler = {
        let reason = reason.clone();
        move |_: DedupeTx| std::future::ready(Err::<(), _>(HandlerError::new(&reason)))
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
    let kept = format!("a\u{1f382}{}", "é".repeat(998));
    assert_eq!(listed(&app).await.reason.as_deref(), Some(&*kept));
    assert_rows!(app.database, claims: 0, effects: 0);
}
