//! Guarantee V2: verification alone, without a database.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::routing::{any, post};
use axum::{Json, Router};
use http_body_util::BodyExt;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, Events, HandlerError, Outcome, Provider, Secret, TenantSecrets,
    VerifiedWebhook, presets,
};
use tower::ServiceExt;

fn github() -> Provider {
    presets::github(Secret::new("a secret").unwrap())
}

fn push() -> TestDelivery {
    TestDelivery::new(&github()).id("a").event_type("push")
}

/// Returns the status, the outcome and the text of the answer.
async fn send(app: &Router, request: Request<Body>) -> (u16, String, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let outcome = response.headers()["x-webhook-outcome"].to_str().unwrap();
    let outcome = outcome.to_owned();
    let said = response.extensions().get::<Outcome>().unwrap();
    assert_eq!(said.as_str(), outcome);
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, outcome, String::from_utf8(body.into()).unwrap())
}

fn answer(status: u16, outcome: &str, text: &str) -> (u16, String, String) {
    (status, outcome.to_owned(), text.to_owned())
}

/// A route whose handler counts its calls.
fn counting(layer: VerifiedWebhook) -> (Router, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let handler = async move |delivery: Delivery| {
        count.fetch_add(1, Ordering::Relaxed);
        delivery.id().to_string()
    };
    (Router::new().route("/", any(handler).layer(layer)), calls)
}

#[tokio::test]
async fn v2_an_authentic_delivery_reaches_the_handler_with_its_raw_body() {
    const BODY: &str = "{\"zeal\" :  1,\"a\":2}";
    let handler = async |delivery: Delivery, body: Bytes| {
        assert_eq!(body, BODY);
        assert_eq!(delivery.endpoint(), "deployments");
        assert_eq!(delivery.key_tenant(), "");
        assert_eq!(delivery.event_type(), Some("push"));
        assert_eq!(delivery.attempt(), 1);
        (StatusCode::CREATED, delivery.id().to_string())
    };
    let layer = VerifiedWebhook::new("deployments", github());
    let app = Router::new().route("/", post(handler).layer(layer));
    // Both copies reach the handler. Without a database, the handler itself must deal with copies.
    for _ in 0..2 {
        let sent = send(&app, push().body(BODY).request()).await;
        assert_eq!(sent, answer(201, "verified", "a"));
    }
}

#[tokio::test]
async fn v2_what_is_not_authentic_or_not_usable_does_not_reach_the_handler() {
    let small = github().body_limit(1000);
    let (app, calls) = counting(VerifiedWebhook::new("test", small));
    let mut forged = push().body("{}").request();
    *forged.body_mut() = Body::from("{ }");
    let mut without_id = push().request();
    without_id.headers_mut().remove("x-github-delivery");
    let mut other_method = push().request();
    *other_method.method_mut() = axum::http::Method::PUT;
    for (request, status) in [
        (forged, 401),
        (without_id, 400),
        (other_method, 405),
        (push().body("x".repeat(1001)).request(), 413),
    ] {
        let (answered, outcome, _) = send(&app, request).await;
        assert_eq!((answered, &*outcome), (status, "rejected"));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let sent = send(&app, push().body("x".repeat(1000)).request()).await;
    assert_eq!(sent, answer(200, "verified", "a"));
}

/// The provider's limit is larger than axum's own limit of 2 MB.
#[tokio::test]
async fn v2_a_body_within_the_limit_of_the_provider_is_read() {
    let handler = async |body: Bytes| body.len().to_string();
    let layer = VerifiedWebhook::new("test", github());
    let app = Router::new().route("/", post(handler).layer(layer));
    let sent = send(&app, push().body("x".repeat(3_000_000)).request()).await;
    assert_eq!(sent, answer(200, "verified", "3000000"));
}

#[tokio::test]
async fn v2_other_events_are_ignored_once_they_are_authentic() {
    let layer = VerifiedWebhook::new("test", github()).only(["push", "issues.opened"]);
    let (app, calls) = counting(layer);
    for (event_type, body, expected) in [
        ("push", "{}", answer(200, "verified", "a")),
        ("release", "{}", answer(200, "ignored", "")),
        (
            "issues",
            r#"{"action":"opened"}"#,
            answer(200, "verified", "a"),
        ),
        (
            "issues",
            r#"{"action":"closed"}"#,
            answer(200, "ignored", ""),
        ),
    ] {
        let request = push().event_type(event_type).body(body).request();
        assert_eq!(send(&app, request).await, expected, "{event_type} {body}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    let mut forged = push().event_type("release").body("{}").request();
    *forged.body_mut() = Body::from("{ }");
    assert_eq!(send(&app, forged).await.0, 401);
}

#[tokio::test]
async fn v2_events_have_handlers_by_their_types() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = |name: &'static str| {
        let seen = seen.clone();
        async move |delivery: Delivery, Json(body): Json<u32>| {
            let seen_now = format!("{name} {} {body}", delivery.id());
            seen.lock().unwrap().push(seen_now);
            StatusCode::OK
        }
    };
    let events = Events::new()
        .on("push", see("push"))
        .on("release", see("release"))
        .ignore_others();
    let layer = VerifiedWebhook::new("test", github());
    let app = Router::new().route("/", post(events.layer(layer)));
    for (event_type, outcome) in [
        ("release", "verified"),
        ("issues", "ignored"),
        ("push", "verified"),
    ] {
        let request = push().event_type(event_type).body("7").request();
        assert_eq!(send(&app, request).await, answer(200, outcome, ""));
    }
    assert_eq!(*seen.lock().unwrap(), ["release a 7", "push a 7"]);
}

#[test]
#[should_panic(expected = "has another table of event types already")]
fn v2_a_layer_has_one_table_of_event_types() {
    let layer = VerifiedWebhook::new("test", github()).only(["push"]);
    let events = Events::new().on("release", async || ()).ignore_others();
    let _: axum::routing::MethodRouter = post(events.layer(layer));
}

/// If a provider requires a certain answer, the layer gives this answer regardless of the handler.
#[tokio::test]
async fn v2_the_answer_is_the_one_that_the_provider_wants() {
    let failing = |status: u16| async move || StatusCode::from_u16(status).unwrap();
    let later = github().failure_status(StatusCode::SERVICE_UNAVAILABLE);
    let created = github().success_status(StatusCode::ACCEPTED);
    for (provider, handlers, expected) in [
        (github(), 200, 200),
        (github(), 404, 404),
        (github(), 410, 500),
        (later.clone(), 422, 503),
        (later, 204, 204),
        (created, 200, 202),
    ] {
        let layer = VerifiedWebhook::new("test", provider);
        let app = Router::new().route("/", post(failing(handlers)).layer(layer));
        let (status, outcome, _) = send(&app, push().request()).await;
        let success = (200..300).contains(&handlers);
        let named = if success { "verified" } else { "failed" };
        assert_eq!((status, &*outcome), (expected, named), "{handlers}");
    }
}

#[tokio::test]
async fn v2_a_handlers_error_is_a_500() {
    let handler = async || Err::<(), _>(HandlerError::new("no such order"));
    let layer = VerifiedWebhook::new("test", github());
    let app = Router::new().route("/", post(handler).layer(layer));
    assert_eq!(
        send(&app, push().request()).await,
        answer(500, "failed", "")
    );
}

/// `VerifiedWebhook` has no transaction, so it does not call a handler that takes one.
#[tokio::test]
async fn v2_a_handler_that_takes_a_transaction_is_not_called() {
    let handler = async |_: DedupeTx| StatusCode::OK;
    let layer = VerifiedWebhook::new("test", github());
    let app = Router::new().route("/", post(handler).layer(layer));
    let sent = send(&app, push().request()).await;
    assert_eq!(sent, answer(500, "failed", "internal error"));
}

#[tokio::test]
async fn v2_secrets_of_tenants_are_looked_up() {
    let tenant = |head: &Parts| Some(head.headers.get("x-tenant")?.to_str().ok()?.to_owned());
    let secrets = TenantSecrets::new(tenant, async |tenant: String| match &*tenant {
        "acme" => Ok(Some(Secret::new("a secret").unwrap())),
        "broken" => Err("the vault is away".into()),
        _ => Ok(None),
    });
    let provider = presets::github(secrets.separate_ids());
    let handler = async |delivery: Delivery| delivery.key_tenant().to_owned();
    let layer = VerifiedWebhook::new("test", provider);
    let app = Router::new().route("/", post(handler).layer(layer));
    for (tenant, expected) in [
        ("acme", answer(200, "verified", "acme")),
        (
            "other",
            answer(401, "rejected", "signature missing or not valid"),
        ),
        ("broken", answer(503, "failed", "temporarily unavailable")),
    ] {
        let mut request = push().request();
        let name = tenant.parse().unwrap();
        request.headers_mut().insert("x-tenant", name);
        assert_eq!(send(&app, request).await, expected, "{tenant}");
    }
}
