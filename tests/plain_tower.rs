//! The layer without axum: any tower service whose bodies can be made from `Bytes`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use idempotent_webhook::service::ExtractError;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, IdempotentWebhook, Keep, Recovery, Secret, migrate, presets,
};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

type Body = Full<Bytes>;

fn push(id: &str) -> Request<Body> {
    TestDelivery::new(&presets::github(Secret::new("secret").unwrap()))
        .id(id)
        .request()
}

async fn database() -> (ThrowawayPostgres, PgPool, IdempotentWebhook) {
    let server = ThrowawayPostgres::start(Durability::Lossy).await.unwrap();
    let pool = PgPoolOptions::new()
        .connect_with(server.options("postgres"))
        .await
        .unwrap();
    migrate(&pool).await.unwrap();
    sqlx::query("create table effects (delivery_id text)")
        .execute(&pool)
        .await
        .unwrap();
    let provider = presets::github(Secret::new("secret").unwrap());
    let layer = IdempotentWebhook::new(pool.clone(), "test", provider);
    (server, pool, layer)
}

/// How many deliveries are claimed, and how many effects the handlers have left.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Rows {
    claims: i64,
    effects: i64,
}

async fn rows(pool: &PgPool) -> Rows {
    sqlx::query_as(
        "select
            (select count(*) from idempotent_webhook.deliveries) as claims,
            (select count(*) from effects) as effects",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

async fn handle(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let delivery = request.extensions().get::<Delivery>().unwrap();
    let mut tx = DedupeTx::take(request.extensions()).unwrap();
    sqlx::query("insert into effects values ($1)")
        .bind(delivery.id().as_str())
        .execute(&mut *tx)
        .await
        .unwrap();
    assert_eq!(
        DedupeTx::take(request.extensions()).unwrap_err(),
        ExtractError::AlreadyTaken
    );
    Ok(Response::new("done".into()))
}

#[tokio::test]
async fn a_tower_service_is_made_idempotent() {
    let (_server, pool, layer) = database().await;
    let mut service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(handle));
    for (outcome, text) in [("processed", "done"), ("duplicate", "")] {
        let response = service
            .ready()
            .await
            .unwrap()
            .call(push("a"))
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["x-webhook-outcome"], outcome);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, text);
    }
    assert_eq!(
        rows(&pool).await,
        Rows {
            claims: 1,
            effects: 1
        }
    );
}

#[tokio::test]
async fn g6_an_error_of_the_service_is_rolled_back_and_passed_on() {
    static FAILS: AtomicBool = AtomicBool::new(true);
    async fn fail(request: Request<Body>) -> Result<Response<Body>, io::Error> {
        let Ok(response) = handle(request).await;
        if FAILS.swap(false, Ordering::Relaxed) {
            return Err(io::Error::other("upstream is gone"));
        }
        Ok(response)
    }
    let (_server, pool, layer) = database().await;
    let service = ServiceBuilder::new().layer(layer).service(service_fn(fail));
    let error = service.clone().oneshot(push("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "upstream is gone");
    assert_eq!(
        rows(&pool).await,
        Rows {
            claims: 0,
            effects: 0
        }
    );
    assert_eq!(service.oneshot(push("a")).await.unwrap().status(), 200);
    assert_eq!(
        rows(&pool).await,
        Rows {
            claims: 1,
            effects: 1
        }
    );
}

/// Is only ready after `poll_ready`, as a service with a limit would be.
#[derive(Default)]
struct Strict {
    ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<Body>> for Strict {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        self.ready = true;
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(self.ready, "called without having been ready");
        std::future::ready(Ok(Response::new("done".into())))
    }
}

#[tokio::test]
async fn the_service_that_was_ready_is_the_one_that_is_called() {
    let (_server, pool, layer) = database().await;
    let mut service = ServiceBuilder::new()
        .layer(layer)
        .service(Strict::default());
    for id in ["a", "b"] {
        let response = service.ready().await.unwrap().call(push(id)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    }
    assert_eq!(
        rows(&pool).await,
        Rows {
            claims: 2,
            effects: 0
        }
    );
}

#[tokio::test]
async fn every_success_has_the_status_that_the_provider_takes_for_one() {
    let (_server, pool, _) = database().await;
    let linear = presets::linear(Secret::new("secret").unwrap());
    let layer = IdempotentWebhook::new(pool.clone(), "test", linear.clone());
    let no_content = async |request: Request<Body>| -> Result<Response<Body>, Infallible> {
        let Ok(mut response) = handle(request).await;
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    };
    let service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(no_content));
    for outcome in ["processed", "duplicate"] {
        let request = TestDelivery::new(&linear).id("a").request();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["x-webhook-outcome"], outcome);
    }
}

#[tokio::test]
async fn g13_the_text_of_an_error_is_the_reason_and_reaches_the_sender() {
    async fn refuse(_: Request<Body>) -> Result<Response<Body>, Infallible> {
        let mut response = Response::new(Body::from("no such order"));
        *response.status_mut() = StatusCode::CONFLICT;
        let text = http::HeaderValue::from_static("text/plain");
        response.headers_mut().insert("content-type", text);
        Ok(response)
    }
    let (_server, pool, layer) = database().await;
    let keep = Keep::failed(&Recovery::new(pool.clone())).body_limit(0);
    let service = ServiceBuilder::new()
        .layer(layer.keep(keep))
        .service(service_fn(refuse));
    let response = service.oneshot(push("a")).await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "no such order");
    let reason: String =
        sqlx::query_scalar("select reason from idempotent_webhook.failing_deliveries")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(reason, "the handler answered 409 Conflict: no such order");
    assert_eq!(
        rows(&pool).await,
        Rows {
            claims: 0,
            effects: 0
        }
    );
}
