//! The test kit: signed requests, and the assertion that a handler is idempotent.

use std::panic::AssertUnwindSafe;
use std::time::SystemTime;

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use futures_util::FutureExt;
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Keys, Provider};

use crate::support::{Webhook, ok, record};

type Preset = fn(Keys) -> Provider;
type Kit = fn(&'static str) -> TestDelivery;

/// Base64 as well, for those who want that.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const PRESETS: [(Preset, Kit); 8] = [
    (Provider::stripe, TestDelivery::stripe),
    (Provider::github, TestDelivery::github),
    (Provider::shopify, TestDelivery::shopify),
    (Provider::slack, TestDelivery::slack),
    (Provider::linear, TestDelivery::linear),
    (Provider::standard_webhooks, TestDelivery::standard_webhooks),
    (Provider::svix, TestDelivery::svix),
    (Provider::awardee, TestDelivery::awardee),
];

#[test]
fn every_preset_accepts_what_the_kit_signs_and_refuses_its_variants() {
    for (preset, kit) in PRESETS {
        let provider = preset(idempotent_webhook::Secret::new(SECRET).unwrap().into());
        let verify = |delivery: &TestDelivery| {
            let (head, body) = delivery.request::<Bytes>().into_parts();
            provider.verify(&head, &body, SystemTime::now())
        };
        let sent = kit(SECRET).id("an-id").event_type("a.type");
        for body in [
            None,
            Some("{}"),
            Some(r#"{"id":"x","event_id":"x","type":"x"}"#),
        ] {
            let sent = match body {
                None => sent.clone(),
                Some(body) => sent.clone().body(body),
            };
            let verified = verify(&sent).unwrap_or_else(|error| panic!("{provider:?}: {error:?}"));
            assert_eq!(verified.delivery_id().as_str(), "an-id", "{provider:?}");
            assert_eq!(verified.event_type(), Some("a.type"), "{provider:?}");
            for wrong in [sent.tampered(), sent.unsigned()] {
                assert!(verify(&wrong).is_err(), "{provider:?} {wrong:?}");
            }
            let expires = verified.signed_at().is_some();
            assert_eq!(verify(&sent.expired()).is_err(), expires, "{provider:?}");
        }
        let other = kit("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").id("an-id");
        assert!(verify(&other).is_err(), "{provider:?}");
    }
}

#[test]
fn an_event_type_replaces_nothing_else_of_slacks_event() {
    let body = r#"{"event_id":"Ev1","type":"event_callback","event":{"type":"x","text":"hi"}}"#;
    let sent = TestDelivery::slack(SECRET).body(body);
    assert_eq!(sent.clone().event_type("x").request::<Bytes>().body(), body);
    let changed = sent.event_type("message").request::<Bytes>().into_body();
    let changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
    assert_eq!(
        changed["event"],
        serde_json::json!({ "type": "message", "text": "hi" })
    );
}

async fn effects(webhook: &Webhook) -> i64 {
    webhook.database.rows().await.1
}

fn delivery() -> TestDelivery {
    TestDelivery::github(crate::support::SECRET)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_behind_the_layer_is_idempotent() {
    let webhook = Webhook::new(ok).await;
    assert_idempotent(&webhook.router, &delivery(), async || {
        effects(&webhook).await
    })
    .await;
    assert_eq!(webhook.database.rows().await, (1, 1));
}

/// The application's own table does not take what the same body says twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_with_a_unique_key_of_its_own_is_idempotent_too() {
    type Set = fn(IdempotentWebhook) -> IdempotentWebhook;
    let sets: [Set; 2] = [|layer| layer, IdempotentWebhook::replay_guard];
    for (insert, set) in [
        ("insert into orders values ($1)", sets[0]),
        (
            "insert into orders values ($1) on conflict do nothing",
            sets[0],
        ),
        ("insert into orders values ($1)", sets[1]),
    ] {
        let handler = async move |mut tx: DedupeTx, body: String| {
            let inserted = sqlx::query(insert).bind(body).execute(&mut *tx).await;
            match inserted {
                Ok(_) => StatusCode::OK,
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
            }
        };
        let provider = Provider::github(crate::support::secret());
        let webhook = Webhook::with(provider, set, handler).await;
        webhook
            .database
            .run("create table orders (said text primary key)")
            .await;
        assert_idempotent(&webhook.router, &delivery(), async || {
            sqlx::query_scalar("select count(*) from orders")
                .fetch_one(&webhook.database.pool)
                .await
                .unwrap()
        })
        .await;
    }
}

#[test]
fn a_body_without_an_id_gets_the_one_that_the_provider_would_say() {
    for kit in [TestDelivery::stripe, TestDelivery::slack] {
        let body = |delivery: TestDelivery| -> serde_json::Value {
            serde_json::from_slice(&delivery.request::<Bytes>().into_body()).unwrap()
        };
        let filled = body(kit(SECRET).body(r#"{"data":1}"#));
        let id = filled.get("id").or(filled.get("event_id"));
        assert_eq!(id.unwrap(), "delivery-1");
        assert_eq!(filled["data"], 1);
        let own = r#"{"id":"own","event_id":"own"}"#;
        assert_eq!(kit(SECRET).body(own).request::<Bytes>().body(), own);
    }
    let handshake = r#"{"type":"url_verification","challenge":"x"}"#;
    let sent = TestDelivery::slack(SECRET).body(handshake);
    assert_eq!(sent.request::<Bytes>().body(), handshake);
}

/// What the assertion says of a router that is not idempotent.
async fn complaint(webhook: &Webhook, router: &axum::Router) -> String {
    let delivery = delivery();
    message(assert_idempotent(router, &delivery, async || {
        effects(webhook).await
    }))
    .await
}

/// What it panics with.
async fn message(asserted: impl Future<Output = ()>) -> String {
    let panic = AssertUnwindSafe(asserted).catch_unwind().await.unwrap_err();
    match panic.downcast_ref::<&str>() {
        Some(message) => (*message).to_owned(),
        None => panic.downcast_ref::<String>().unwrap().clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assertion_finds_what_is_not_idempotent() {
    // Past the layer's transaction.
    let webhook = Webhook::new(ok).await;
    let pool = webhook.database.pool.clone();
    let naive = axum::routing::post(async move || {
        sqlx::query("insert into effects values ('naive')")
            .execute(&pool)
            .await
            .unwrap();
    });
    let naive = axum::Router::new().route("/", naive);
    assert_eq!(
        complaint(&webhook, &naive).await,
        "the delivery was answered with 200 OK, but not by IdempotentWebhook: is \
         the layer on this route?"
    );

    // What is taken for the id is another one each time.
    let unstable = webhook.router.clone().layer(axum::middleware::map_request(
        async |mut request: Request<Body>| {
            let id = format!("{:x}", fastrand::u128(..));
            request
                .headers_mut()
                .insert("x-github-delivery", id.parse().unwrap());
            request
        },
    ));
    assert_eq!(
        complaint(&webhook, &unstable).await,
        "of 5 copies of the delivery, 5 were processed"
    );

    let pool = Webhook::new(ok).await;
    let past = pool.database.pool.clone();
    let past_the_transaction = pool
        .elsewhere(
            Provider::github(crate::support::secret()),
            async move || {
                sqlx::query("insert into effects values ('past')")
                    .execute(&past)
                    .await
                    .unwrap();
            },
        )
        .await;
    let said = complaint(&pool, &past_the_transaction).await;
    assert!(said.contains("has not taken DedupeTx"), "{said}");

    let idle = Webhook::new(async |_: DedupeTx| StatusCode::OK).await;
    let said = complaint(&idle, &idle.router).await;
    assert!(said.contains("had 0 effects"), "{said}");

    // Between the times that it is sent, all deliveries are forgotten.
    let forgetful = Webhook::new(ok).await;
    let forget = "delete from idempotent_webhook.deliveries";
    let delivery = delivery();
    let asserted = assert_idempotent(&forgetful.router, &delivery, async || {
        forgetful.database.run(forget).await;
        effects(&forgetful).await
    });
    assert_eq!(
        message(asserted).await,
        "the delivery had been processed, was sent again and had 1 more effects"
    );

    let failing = Webhook::new(async |mut tx: DedupeTx, delivery: Delivery| {
        record(&mut tx, &delivery).await.unwrap();
        StatusCode::CONFLICT
    })
    .await;
    let said = complaint(&failing, &failing.router).await;
    assert!(said.contains("was answered with 409 Conflict"), "{said}");

    let known = Webhook::new(ok).await;
    known
        .send(TestDelivery::github(crate::support::SECRET).request())
        .await;
    let said = complaint(&known, &known.router).await;
    assert!(said.contains("was processed before"), "{said}");
}
