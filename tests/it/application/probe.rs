//! Guarantee Deploy 3: a probe at startup reports paths where no layer answers, and what has answered instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use idempotent_webhook::recovery::RecoveryTask;
use idempotent_webhook::{IdempotentWebhook, Recovery, presets};
use tower_http::limit::RequestBodyLimitLayer;

use crate::support::{
    Database, assert_rows, github, logged, secret, send, soon, until_logged, write_effect,
};

fn layer(database: &Database, endpoint: &'static str) -> IdempotentWebhook {
    IdempotentWebhook::new(database.pool.clone(), endpoint, presets::github(secret()))
}

fn recovery(database: &Database) -> Recovery {
    Recovery::new(database.pool.clone()).probe("test", "/hooks")
}

/// Returns what is logged about the probe before a later probe, to another path, is logged.
async fn warned(database: &Database, router: Router) -> String {
    let log = logged(async {
        let task: RecoveryTask = recovery(database).probe("last", "/nowhere").spawn(router);
        until_logged("endpoint=\"last\"").await;
        soon(task.stop()).await;
    });
    let log = log.await;
    let lines = log
        .lines()
        .filter(|line| line.contains("endpoint=\"test\""));
    lines.collect::<Vec<_>>().join("\n")
}

async fn refuse(_: Request, _: Next) -> Response {
    StatusCode::UNAUTHORIZED.into_response()
}

async fn redirect(_: Request, _: Next) -> Response {
    Redirect::to("/login").into_response()
}

#[tokio::test]
async fn deploy_3_a_layer_that_is_reached_is_no_warning_and_runs_nothing() {
    let database = Database::new().await;
    let router = Router::new().route("/hooks", post(write_effect).layer(layer(&database, "test")));
    let limited = router.clone().layer(RequestBodyLimitLayer::new(10));
    for router in [router, limited] {
        assert_eq!(warned(&database, router).await, "");
    }
    assert_rows!(database, claims: 0, effects: 0);
    let counted = "select count(*) from idempotent_webhook.activity";
    assert_eq!(database.count(counted).await, 0);
}

#[tokio::test]
async fn deploy_3_where_no_layer_answers_it_is_said_what_has() {
    let database = Database::new().await;
    let hooks = || post(write_effect).layer(layer(&database, "test"));
    let plain = || post(async || "done");
    let behind = |layer: fn(Router) -> Router| layer(Router::new().route("/hooks", hooks()));
    let cases = [
        (
            "the layer before the routes",
            Router::new()
                .layer(layer(&database, "test"))
                .route("/hooks", plain()),
            "status=200",
            "is the layer applied to this route",
        ),
        (
            "a login in front",
            behind(|router| router.layer(middleware::from_fn(refuse))),
            "status=401",
            "such as a login",
        ),
        (
            "a login that redirects",
            behind(|router| router.layer(middleware::from_fn(redirect))),
            "status=303",
            "providers do not follow",
        ),
        (
            "another prefix",
            behind(|router| Router::new().nest("/api", router)),
            "status=404",
            "another prefix",
        ),
        (
            "another method",
            Router::new().route("/hooks", get(async || "done")),
            "status=405",
            "does not take POST",
        ),
        (
            "a fallback",
            Router::new().fallback(async || "hello"),
            "status=200",
            "something else has answered",
        ),
    ];
    for (case, router, status, why) in cases {
        let warned = warned(&database, router).await;
        assert!(
            warned.contains(status) && warned.contains(why),
            "{case}: {warned}"
        );
    }
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn deploy_3_the_layer_of_another_endpoint_is_named() {
    let database = Database::new().await;
    let inner = post(write_effect).layer(layer(&database, "test"));
    let both = Router::new().route("/hooks", inner);
    let warned = warned(&database, both.layer(layer(&database, "other"))).await;
    assert!(warned.contains("another endpoint"), "{warned}");
    assert!(warned.contains("reached=\"other\""), "{warned}");
}

/// A handler that receives a probe gets an empty body, and a header that identifies the probe in its log.
#[tokio::test]
async fn deploy_3_a_probe_is_empty_and_is_not_sent_if_it_is_switched_off() {
    let database = Database::new().await;
    let probes = Arc::new(AtomicU32::new(0));
    let count = probes.clone();
    let handler = async move |headers: HeaderMap, body: Bytes| {
        assert!(body.is_empty() && !headers.contains_key("content-type"));
        assert_eq!(headers["x-webhook-probe"], "idempotent-webhook");
        count.fetch_add(1, Ordering::SeqCst);
    };
    let router = Router::new().route("/hooks", post(handler));
    let quiet = recovery(&database).without_probe().spawn(router.clone());
    soon(quiet.stop()).await;
    warned(&database, router).await;
    assert_eq!(probes.load(Ordering::SeqCst), 1);
}

/// If a request from outside has the header of a probe, the header has no effect: the request is refused if it is not
/// signed, and processed if it is signed.
#[tokio::test]
async fn deploy_3_nobody_outside_can_send_a_probe() {
    let database = Database::new().await;
    let router = Router::new().route("/", post(write_effect).layer(layer(&database, "test")));
    let probe = Request::post("/").header("x-webhook-probe", "idempotent-webhook");
    let answer = send(&router, probe.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!((answer.status, &*answer.outcome), (401, "rejected"));
    let mut signed = github("a", "{}");
    let mark = "idempotent-webhook".parse().unwrap();
    signed.headers_mut().insert("x-webhook-probe", mark);
    assert_eq!(send(&router, signed).await.outcome, "processed");
    assert_rows!(database, claims: 1, effects: 1);
}
