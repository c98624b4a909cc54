//! A canary checks the layer, the secret and Postgres. It leaves no row, and calls no handler.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    Events, IdempotentWebhook, Keep, Recovery, Secret, Secrets, Source, TenantSecrets,
    VerifiedWebhook, presets,
};

use crate::support::{
    Answer, Database, TestApp, answer, assert_rows, github, github_delivery, logged, secret, send,
    write_effect,
};

const CLAIMED: &str = "the signature is valid; claimed in Postgres, and rolled back";
const MARK: &str = "\"idempotent-webhook-canary\"";

fn canary() -> TestDelivery {
    TestDelivery::canary(&presets::github(secret())).unwrap()
}

fn reached() -> Answer {
    answer(200, "canary", CLAIMED)
}

/// Adds settings to a layer.
type Set = fn(IdempotentWebhook, &Recovery) -> IdempotentWebhook;

/// Settings for deliveries, which have no effect on a canary.
const SETTINGS: [(&str, Set); 9] = [
    ("plain", |layer, _| layer),
    ("only", |layer, _| layer.only(["pull_request"])),
    ("failed", |layer, recovery| {
        layer.keep(Keep::failed(recovery))
    }),
    ("all", |layer, recovery| layer.keep(Keep::all(recovery))),
    ("accepted", |layer, recovery| {
        layer.keep(Keep::accepted(recovery))
    }),
    ("late", |layer, _| layer.late_claim()),
    ("guard", |layer, _| layer.replay_guard()),
    ("serialized", |layer, _| {
        layer.serialize_by(Source::json("$.object".parse().unwrap()))
    }),
    ("expected", |layer, _| {
        layer.expect_every(std::time::Duration::from_secs(3600))
    }),
];

#[tokio::test]
async fn deploy_3_a_canary_is_claimed_and_rolled_back_and_leaves_nothing() {
    for (name, set) in SETTINGS {
        let handler = async || StatusCode::OK;
        let mut layer = None;
        let set = |new, recovery: &Recovery| layer.insert(set(new, recovery)).clone();
        let app = TestApp::recovered(presets::github(secret()), set, handler).await;
        // A layer writes some rows at its first request, such as its settings. This rejected request makes it write
        // them before the canary comes.
        assert_eq!(
            app.send(github("forged", "{}").map(|_| Body::empty()))
                .await
                .status,
            401
        );
        assert_eq!(app.send(canary().request()).await, reached(), "{name}");
        let layer = layer.unwrap();
        layer.drained().await;
        let before = app.database.snapshot().await;
        // A replayed canary is just as harmless.
        let replayed: Request<Bytes> = canary().request();
        for _ in 0..2 {
            let request = replayed.clone().map(Body::from);
            assert_eq!(app.send(request).await, reached(), "{name}");
        }
        layer.drained().await;
        app.settled().await;
        assert_eq!(app.database.snapshot().await, before, "{name}");
        assert_rows!(app.database, claims: 0, effects: 0);
        assert_eq!(app.runs(), 0, "{name}");
    }
}

#[tokio::test]
async fn deploy_3_a_canary_passes_a_table_that_ignores_others() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let events = Events::new().on("push", write_effect).ignore_others();
    let router = Router::new().route("/", post(events.layer(layer)));
    assert_eq!(send(&router, canary().request()).await, reached());
    assert_rows!(database, claims: 0, effects: 0);
    assert_eq!(send(&router, github("a", "{}")).await.outcome, "processed");
    assert_rows!(database, claims: 1, effects: 1);
}

/// Nothing waits for a canary, and a canary waits for nothing, not even for a replay of itself.
#[tokio::test]
async fn deploy_3_many_replays_of_a_canary_do_not_wait_for_each_other() {
    let app = TestApp::github(write_effect).await;
    let replays = (0..50).map(|_| crate::support::spawn_send(&app.router, canary().request()));
    for replay in replays.collect::<Vec<_>>() {
        assert_eq!(replay.await.unwrap(), reached());
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn deploy_3_a_canary_says_if_postgres_refuses_the_claim() {
    let app = TestApp::github(write_effect).await;
    let hidden = "alter table idempotent_webhook.deliveries rename to hidden";
    app.database.run(hidden).await;
    let log = logged(async {
        let refused = app.send(canary().request()).await;
        let text = "the signature is valid; Postgres could not be reached in time, or has refused the claim";
        assert_eq!(refused, answer(503, "canary", text));
    })
    .await;
    // Only the operator sees the reason.
    assert!(log.contains("WARN") && log.contains("migrate"), "{log}");
}

#[tokio::test]
async fn deploy_3_a_canary_of_a_tenant_needs_the_secret_of_the_tenant() {
    let database = Database::new().await;
    let in_path =
        |head: &axum::http::request::Parts| Some(head.uri.path().strip_prefix("/")?.to_owned());
    let secrets = TenantSecrets::new(in_path, async |tenant: String| {
        let secret = Secret::new(format!("the secret of {tenant}"))?;
        Ok((tenant == "red").then(|| Secrets::new(secret)))
    });
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secrets));
    let router = Router::new().route("/{tenant}", post(write_effect).layer(layer));
    for (tenant, of, status) in [
        ("red", "red", 200),
        ("red", "blue", 401),
        ("blue", "blue", 401),
    ] {
        let secret = Secret::new(format!("the secret of {of}")).unwrap();
        let canary = TestDelivery::canary(&presets::github(secret)).unwrap();
        let answer = send(&router, canary.uri(&format!("/{tenant}")).request()).await;
        assert_eq!(answer.status, status, "{tenant} by {of}");
    }
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn deploy_3_a_layer_that_only_verifies_answers_a_canary_without_its_handler() {
    let layer = VerifiedWebhook::new("test", presets::github(secret()));
    let handler = async || StatusCode::IM_A_TEAPOT;
    let router = Router::new().route("/", post(handler).layer(layer));
    let text = "the signature is valid; this layer claims nothing";
    assert_eq!(
        send(&router, canary().request()).await,
        answer(200, "canary", text)
    );
    assert_eq!(send(&router, github("a", "{}")).await.status, 418);
}

#[tokio::test]
async fn deploy_3_no_canary_is_had_without_the_secret() {
    let app = TestApp::github(write_effect).await;
    let another = presets::github(Secret::new("another secret").unwrap());
    let forged = TestDelivery::canary(&another).unwrap();
    let signed: Request<Bytes> = github("a", "{}").map(|_| Bytes::new());
    for (what, request) in [
        ("unsigned", canary().unsigned().request()),
        ("tampered", canary().tampered().request()),
        ("another secret", forged.request()),
        (
            "the signature of a delivery",
            signed.map(|_| Body::from(MARK)),
        ),
        (
            "the mark alone",
            Request::post("/").body(Body::from(MARK)).unwrap(),
        ),
    ] {
        let refused = app.send(request).await;
        assert_eq!(
            (refused.status, &*refused.outcome),
            (401, "rejected"),
            "{what}"
        );
        assert!(!refused.body.contains("Postgres"), "{what}");
    }
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);

    // A canary is refused if its signature is too old.
    let stripe = presets::stripe(secret());
    let app = TestApp::of(stripe.clone(), write_effect).await;
    let expired = TestDelivery::canary(&stripe).unwrap().expired();
    assert_eq!(app.send(expired.request()).await.status, 401);
    // A token does not cover the body. Somebody who knows it could send deliveries, but no canary.
    let telegram = presets::telegram(secret());
    let app = TestApp::of(telegram.clone(), write_effect).await;
    let marked = TestDelivery::new(&telegram).body(MARK).request();
    assert_eq!(
        app.send(marked).await,
        answer(
            400,
            "rejected",
            "no usable delivery id: $.update_id is missing"
        )
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// A canary is recognized by its body alone, so a delivery with all headers of a canary is still processed.
#[tokio::test]
async fn deploy_3_a_delivery_with_each_header_of_a_canary_is_processed() {
    let app = TestApp::github(write_effect).await;
    let canary: Request<Bytes> = canary().request();
    let mut delivery = github_delivery().id("a").body("{}");
    for (name, value) in canary.headers() {
        if name != "x-github-delivery" {
            delivery = delivery.header(name.clone(), value.to_str().unwrap());
        }
    }
    for name in [
        "x-webhook-canary",
        "x-webhook-outcome",
        "x-canary",
        "user-agent",
    ] {
        delivery = delivery.header(HeaderName::from_static(name), "canary");
    }
    assert_eq!(app.send(delivery.request()).await.outcome, "processed");
    // A body that only contains the mark is not a canary either.
    for (id, body) in [
        ("b", format!(" {MARK}")),
        ("c", format!("[{MARK}]")),
        ("d", format!("{{{MARK}:1}}")),
    ] {
        assert_eq!(
            app.send(github(id, body)).await.outcome,
            "processed",
            "{id}"
        );
    }
    assert_rows!(app.database, claims: 4, effects: 4);
}
