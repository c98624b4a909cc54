//! Requests, rows, answers and schedules that are out of the ordinary: each is kept and run as it
//! is, or has a documented outcome.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Form;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Recovery};

use crate::recovery::{Answered, Failing, NOTHING_KEPT, ONE_DEAD, endpoint, keep, kept, recover};
use crate::support::{
    TestApp, answer, assert_rows, github, github_delivery, insert_effect, write_effect,
};

/// Fails the first attempt at each delivery, and notes what it got.
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
    let set = |layer: IdempotentWebhook| {
        let layer = keep(layer).handler_timeout(Duration::from_secs(60));
        layer.keep_body_limit(25 * 1024 * 1024)
    };
    let app = TestApp::github_with(set, handler).await;
    for body in [
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"\xff\xfe not UTF-8 \xc3("),
        Bytes::from_static(b"\xef\xbb\xbf{}\r\n\r\n"),
        // As large as GitHub sends.
        every_byte.repeat(25 * 1024 * 4).into(),
    ] {
        seen.lock().unwrap().clear();
        let id = format!("of-{}", body.len());
        let first = app.send(github(&id, body.clone())).await;
        assert_eq!(first, answer(409, "kept", ""));
        let recovery = recover(&app);
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
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
    let app = TestApp::github_with(keep, handler).await;
    let sent = github_delivery()
        .header(
            HeaderName::from_static("content-type"),
            "application/x-www-form-urlencoded",
        )
        .body("payload=%7B%22a%22%3A1%7D&empty=&plus=a+b");
    assert_eq!(app.send(sent.request()).await, answer(409, "kept", ""));
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
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
    let set = move |layer| keep(layer).keep_headers(named);
    let app = TestApp::github_with(set, handler).await;
    let mut request: Request<Body> = github_delivery().request();
    for (n, name) in names.iter().enumerate() {
        let values: [&[u8]; 3] = [b"", b"a: b, c", b"\xf0\x9f\x8e\x82\t\xff"];
        for value in &values[..=n % 3] {
            let value = HeaderValue::from_bytes(value).unwrap();
            request.headers_mut().append(name.clone(), value);
        }
    }
    assert_eq!(app.send(request).await, answer(409, "kept", ""));
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen.len(), seen[0].len()), (2, 600));
    assert_eq!(seen[0], seen[1]);
    assert_rows!(app.database, claims: 1, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_a_row_of_a_format_that_is_not_known_is_left_alone() {
    let failing = Failing::times(2);
    let app = TestApp::github_with(keep, failing.handler()).await;
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
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_eq!(failing.attempts(), [1, 1, 2]);

    // The later version runs it.
    app.database
        .run("update idempotent_webhook.kept_requests set format = 1")
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 2, effects: 2);
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
        let app = TestApp::github_with(keep, failing.handler()).await;
        app.send(github("a", "{}")).await;
        app.database
            .run(&format!(
                "update idempotent_webhook.kept_requests set {damage}"
            ))
            .await;
        let recovery = recover(&app);
        app.database.until(ONE_DEAD).await;
        recovery.stop().await;
        let listed = endpoint(&app).kept(&Filter::new(), 1).await.unwrap();
        let reason = listed[0].reason.as_deref().unwrap_or_default();
        assert!(reason.contains("cannot be read"), "{damage}: {reason}");
        assert_eq!(failing.attempts(), [1]);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_an_answer_that_is_no_success_is_a_failure_whatever_its_status() {
    for status in [100, 101, 103, 302, 304, 404, 405, 410, 599, 999] {
        let handler = move |mut tx: DedupeTx, delivery: Delivery| async move {
            insert_effect(&mut tx, &delivery).await.unwrap();
            StatusCode::from_u16(status).unwrap()
        };
        let app = TestApp::github_with(keep, handler).await;
        assert_eq!(
            app.send(github("a", "{}")).await,
            answer(status, "kept", "")
        );
        let recovery = recover(&app);
        app.database.until(ONE_DEAD).await;
        recovery.stop().await;
        assert_eq!(kept(&app.database).await, ("dead".into(), 4, 3));
        let listed = endpoint(&app).kept(&Filter::new(), 1).await.unwrap();
        assert_eq!(listed[0].status, Some(status));
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
    let app = TestApp::github_with(keep, endless).await;
    for id in ["a", "b", "c"] {
        assert_eq!(app.send(github(id, "{}")).await, answer(409, "kept", ""));
    }
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_a_handler_that_never_answers_uses_up_its_attempts() {
    let set = |layer: IdempotentWebhook| keep(layer).handler_timeout(Duration::from_millis(50));
    let hanging = |mut tx: DedupeTx, delivery: Delivery| -> Answered {
        Box::pin(async move {
            insert_effect(&mut tx, &delivery).await?;
            std::future::pending().await
        })
    };
    let app = TestApp::github_with(set, hanging).await;
    let first = app.send(github("a", "{}")).await;
    assert_eq!((first.status, &*first.outcome), (503, "kept"));
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("dead".into(), 4, 3));
    let listed = endpoint(&app).kept(&Filter::new(), 1).await.unwrap();
    let reason = listed[0].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("took longer"), "{reason}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// It does not reach the layer, so nothing else would end the attempt.
#[tokio::test(flavor = "multi_thread")]
async fn r7_a_middleware_that_never_answers_costs_no_attempt() {
    let set = |layer: IdempotentWebhook| {
        keep(layer)
            .handler_timeout(Duration::from_millis(50))
            .in_flight_timeout(Duration::from_millis(50))
            .database_timeout(Duration::from_millis(200))
    };
    let app = TestApp::github_with(set, Failing::times(1).handler()).await;
    app.send(github("a", "{}")).await;
    let hanging: Router = app.router.clone().layer(map_request(|_: Request<Body>| {
        std::future::pending::<Request<Body>>()
    }));
    let recovery = Recovery::new(app.database.pool.clone(), hanging).spawn();
    let deferred = "exists (
        select from idempotent_webhook.kept_deliveries
        where running_until is null and next_attempt_at > now() + interval '30 seconds'
    )";
    app.database.until(deferred).await;
    recovery.stop().await;
    assert_eq!(kept(&app.database).await, ("due".into(), 1, 0));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_schedule_of_zeroes_ends() {
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([Duration::ZERO; 5]);
    let failing = Failing::times(99);
    let app = TestApp::github_with(set, failing.handler()).await;
    app.send(github("a", "{}")).await;
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(kept(&app.database).await, ("dead".into(), 6, 5));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_schedule_of_years_is_one_of_a_year() {
    let in_a_year = "exists (
        select from idempotent_webhook.kept_deliveries
        where state = 'due' and running_until is null
            and next_attempt_at between now() + interval '290 days' and now() + interval '440 days'
    )";
    let years = Duration::from_secs(1000 * 365 * 24 * 60 * 60);
    for (delays, attempts) in [([years, years], 1), ([Duration::ZERO, Duration::MAX], 2)] {
        let set = move |layer: IdempotentWebhook| layer.keep_failed().retry_delays(delays);
        let failing = Failing::times(99);
        let app = TestApp::github_with(set, failing.handler()).await;
        assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
        let recovery = recover(&app);
        app.database.until(in_a_year).await;
        recovery.stop().await;
        let state = ("due".into(), attempts, attempts - 1);
        assert_eq!(kept(&app.database).await, state);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_schedule_of_nothing_leaves_it_to_an_operator() {
    let set = |layer: IdempotentWebhook| layer.keep_failed().retry_delays([]);
    let failing = Failing::times(2);
    let app = TestApp::github_with(set, failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
    assert_eq!(kept(&app.database).await, ("dead".into(), 1, 0));
    let recovery = recover(&app);
    for _ in 0..2 {
        endpoint(&app).retry("a").await.unwrap();
        let is_over = "not exists (
            select from idempotent_webhook.kept_deliveries where state = 'due'
        )";
        app.database.until(is_over).await;
    }
    recovery.stop().await;
    // The first one of the operator fails as well, and is the only one of its schedule.
    assert_eq!(failing.attempts(), [1, 2, 3]);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn r1_a_reason_that_postgres_cannot_hold_is_kept_without_what_is_wrong() {
    let reason = format!("\0a\u{1f382}\0{}", "é".repeat(5000));
    let handler = {
        let reason = reason.clone();
        move |_: DedupeTx| std::future::ready(Err::<(), _>(HandlerError::new(&reason)))
    };
    let app = TestApp::github_with(keep, handler).await;
    assert_eq!(app.send(github("a", "{}")).await, answer(500, "kept", ""));
    let listed = endpoint(&app).kept(&Filter::new(), 1).await.unwrap();
    let kept = format!("a\u{1f382}{}", "é".repeat(998));
    assert_eq!(listed[0].reason.as_deref(), Some(&*kept));
    let elsewhere = app.elsewhere(write_effect).await;
    let retried = crate::support::send(&elsewhere, github("a", "{}")).await;
    assert_eq!(retried.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}
