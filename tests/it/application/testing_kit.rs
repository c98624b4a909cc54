//! The test kit: signed requests, and the assertion that a handler is idempotent.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Request, StatusCode};
use futures_util::FutureExt;
use idempotent_webhook::provider::signature::{
    Hmac, SignatureError, SignatureScheme, Signed, SignedContent, SignedRequest,
};
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Provider, Secret, Secrets, Source,
    TenantSecrets, presets,
};

use crate::support::{
    TestApp, assert_rows, gated, github_delivery, insert_effect, spawn_send, write_effect,
};

/// Valid base64, because some schemes need a base64 secret.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn presets_with(secret: &str) -> [Provider; 8] {
    let secret = Secret::new(secret).unwrap();
    [
        presets::stripe(secret.clone()),
        presets::github(secret.clone()),
        presets::shopify(secret.clone()),
        presets::slack(secret.clone()),
        presets::linear(secret.clone()),
        presets::standard_webhooks(secret.clone()),
        presets::svix(secret.clone()),
        presets::awardee(secret),
    ]
}

/// Checks the delivery as signed, tampered with, unsigned and expired.
fn check_variants(provider: &Provider, sent: &TestDelivery) {
    let verify = |delivery: &TestDelivery| {
        let (head, body) = delivery.request::<Bytes>().into_parts();
        provider.verify(&head, &body, SystemTime::now())
    };
    let verified = verify(sent).unwrap_or_else(|error| panic!("{provider:?}: {error:?}"));
    let verified = verified.delivery().unwrap();
    assert_eq!(verified.id().as_str(), "an-id", "{provider:?}");
    assert_eq!(verified.event_type(), Some("a type"), "{provider:?}");
    for wrong in [sent.tampered(), sent.unsigned()] {
        assert!(verify(&wrong).is_err(), "{provider:?} {wrong:?}");
    }
    let expires = verified.signed_at().is_some();
    assert_eq!(verify(&sent.expired()).is_err(), expires, "{provider:?}");
    let other = Secret::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
    assert!(verify(&sent.clone().secret(other)).is_err(), "{provider:?}");
}

#[test]
fn every_preset_accepts_what_the_kit_signs_and_refuses_its_variants() {
    for provider in presets_with(SECRET) {
        let sent = TestDelivery::new(&provider)
            .id("an-id")
            .event_type("a type");
        check_variants(&provider, &sent);
        for body in ["{}", r#"{"id":"x","event_id":"x","type":"x"}"#] {
            check_variants(&provider, &sent.clone().body(body));
        }
    }
}

fn header(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

fn json(path: &str) -> Source {
    Source::json(path.parse().unwrap())
}

#[test]
fn the_kit_signs_for_custom_providers() {
    let timed = || {
        Hmac::base64(header("x-signature"))
            .timestamp_header(header("x-time"))
            .timestamp_in_milliseconds()
    };
    let with_id = timed()
        .id_header(header("x-id"))
        .signed(SignedContent::new().id().timestamp().body());
    let by_field = Hmac::hex(header("x-signature"))
        .prefix("v1=")
        .separator(";")
        .timestamp_field("time=");
    let in_body =
        Hmac::hex(header("x-signature")).timestamp_json("$.meta.sent_at".parse().unwrap());
    for scheme in [timed(), with_id, by_field, in_body] {
        for id in [
            Source::header(header("x-id")),
            Source::header(header("x-id")).or(json("$.id")),
        ] {
            let provider = Provider::custom("acme")
                .signature(scheme.clone(), Secret::new(SECRET).unwrap())
                .delivery_id(id)
                .event_type(json("$.event['type']"));
            let sent = TestDelivery::new(&provider)
                .id("an-id")
                .event_type("a type");
            check_variants(&provider, &sent);
            check_variants(&provider, &sent.body(r#"{"event":{"of":1}}"#));
        }
    }
}

#[test]
fn the_parts_of_an_id_and_the_digest_are_filled() {
    let acme = |id: Source| {
        Provider::custom("acme")
            .signature(
                Hmac::hex(header("x-signature")),
                Secret::new(SECRET).unwrap(),
            )
            .delivery_id(id)
    };
    let id_of = |provider: &Provider, sent: &TestDelivery| {
        let (head, body) = sent.request::<Bytes>().into_parts();
        let verified = provider.verify(&head, &body, SystemTime::now()).unwrap();
        verified.delivery().unwrap().id().to_string()
    };
    let composite = acme(json("$.a").and(json("$.b")));
    let sent = TestDelivery::new(&composite);
    assert_eq!(id_of(&composite, &sent), "10:delivery-110:delivery-1");
    let sent = sent.body(r#"{"b":7}"#);
    assert_eq!(id_of(&composite, &sent), "10:delivery-11:7");
    assert_eq!(id_of(&composite, &sent.id("x")), "1:x1:7");

    let digest = acme(Source::body_digest());
    assert_eq!(id_of(&digest, &TestDelivery::new(&digest)).len(), 64);
}

#[test]
#[should_panic(expected = "no delivery of acme: the request cannot be signed: the scheme does not")]
fn a_scheme_that_cannot_sign_says_so() {
    #[derive(Debug)]
    struct Unsigned;
    impl SignatureScheme for Unsigned {
        fn verify(&self, _: &SignedRequest<'_>, _: &Secrets) -> Result<Signed, SignatureError> {
            Ok(Signed::new())
        }
    }
    let provider = Provider::custom("acme")
        .signature(Unsigned, Secret::new(SECRET).unwrap())
        .delivery_id(json("$.id"));
    TestDelivery::new(&provider).request::<Bytes>();
}

#[test]
#[should_panic(expected = "no delivery of github: it has no secret")]
fn a_provider_of_tenants_needs_a_secret() {
    let secrets = TenantSecrets::new(|_| None, async |_| Ok(None::<Secrets>));
    TestDelivery::new(&presets::github(secrets)).request::<Bytes>();
}

#[test]
fn an_event_type_replaces_nothing_else_of_slacks_event() {
    let body = r#"{"event_id":"Ev1","type":"event_callback","event":{"type":"x","text":"hi"}}"#;
    let sent = TestDelivery::new(&presets::slack(Secret::new(SECRET).unwrap())).body(body);
    assert_eq!(sent.clone().event_type("x").request::<Bytes>().body(), body);
    let changed = sent.event_type("message").request::<Bytes>().into_body();
    let changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
    assert_eq!(
        changed["event"],
        serde_json::json!({ "type": "message", "text": "hi" })
    );
}

async fn effects(app: &TestApp) -> i64 {
    app.database.rows().await.effects
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_behind_the_layer_is_idempotent() {
    let app = TestApp::github(write_effect).await;
    assert_idempotent(&app.router, &github_delivery(), async || {
        effects(&app).await
    })
    .await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The handler writes to a table with a unique key. If the same content comes a second time, the
/// insert fails.
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
        let provider = presets::github(crate::support::secret());
        let app = TestApp::with(provider, set, handler).await;
        app.database
            .run("create table orders (said text primary key)")
            .await;
        assert_idempotent(&app.router, &github_delivery(), async || {
            sqlx::query_scalar("select count(*) from orders")
                .fetch_one(&app.database.pool)
                .await
                .unwrap()
        })
        .await;
    }
}

#[test]
fn a_body_without_an_id_gets_the_one_that_the_provider_would_say() {
    let secret = || Secret::new(SECRET).unwrap();
    for provider in [presets::stripe(secret()), presets::slack(secret())] {
        let sent = TestDelivery::new(&provider);
        let body = |delivery: TestDelivery| -> serde_json::Value {
            serde_json::from_slice(&delivery.request::<Bytes>().into_body()).unwrap()
        };
        let filled = body(sent.clone().body(r#"{"data":1}"#));
        let id = filled.get("id").or(filled.get("event_id"));
        assert_eq!(id.unwrap(), "delivery-1");
        assert_eq!(filled["data"], 1);
        let own = r#"{"id":"own","event_id":"own"}"#;
        assert_eq!(sent.clone().body(own).request::<Bytes>().body(), own);
    }
    let handshake = r#"{"type":"url_verification","challenge":"x"}"#;
    let sent = TestDelivery::new(&presets::slack(Secret::new(SECRET).unwrap())).body(handshake);
    assert_eq!(sent.request::<Bytes>().body(), handshake);
}

#[test]
fn a_body_may_be_borrowed() {
    fn paid(provider: &Provider, body: &str) -> TestDelivery {
        TestDelivery::new(provider).body(body)
    }
    let github = presets::github(Secret::new(SECRET).unwrap());
    let body = format!("{{\"paid\":{}}}", 1);
    assert_eq!(paid(&github, &body).request::<Bytes>().body(), &body);
}

/// The message with which the assertion fails for a router that is not idempotent.
async fn complaint(app: &TestApp, router: &axum::Router) -> String {
    let delivery = github_delivery();
    message(assert_idempotent(router, &delivery, async || {
        effects(app).await
    }))
    .await
}

/// Returns the message of the assertion's panic.
async fn message(asserted: impl Future<Output = ()>) -> String {
    let panic = AssertUnwindSafe(asserted).catch_unwind().await.unwrap_err();
    match panic.downcast_ref::<&str>() {
        Some(message) => (*message).to_owned(),
        None => panic.downcast_ref::<String>().unwrap().clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assertion_finds_what_is_not_idempotent() {
    // The handler writes on another connection, outside of the layer's transaction.
    let app = TestApp::github(write_effect).await;
    let pool = app.database.pool.clone();
    let naive = axum::routing::post(async move || {
        sqlx::query("insert into effects values ('naive')")
            .execute(&pool)
            .await
            .unwrap();
    });
    let naive = axum::Router::new().route("/", naive);
    assert_eq!(
        complaint(&app, &naive).await,
        "the delivery was answered with 200 OK, and not by IdempotentWebhook: is the layer on \
         this route?"
    );

    // The delivery id is different in each request.
    let unstable = app.router.clone().layer(axum::middleware::map_request(
        async |mut request: Request<Body>| {
            let id = format!("{:x}", fastrand::u128(..));
            request
                .headers_mut()
                .insert("x-github-delivery", id.parse().unwrap());
            request
        },
    ));
    assert_eq!(
        complaint(&app, &unstable).await,
        "of 5 copies of the delivery, 5 were processed"
    );

    let pool = TestApp::github(write_effect).await;
    let past = pool.database.pool.clone();
    let past_the_transaction = pool
        .elsewhere(async move || {
            sqlx::query("insert into effects values ('past')")
                .execute(&past)
                .await
                .unwrap();
        })
        .await;
    let said = complaint(&pool, &past_the_transaction).await;
    assert!(said.contains("1 of its effects remain"), "{said}");

    let writes_nothing = TestApp::github(async || StatusCode::OK).await;
    let said = complaint(&writes_nothing, &writes_nothing.router).await;
    assert!(said.contains("has not taken DedupeTx"), "{said}");

    let idle = TestApp::github(async |_: DedupeTx| StatusCode::OK).await;
    let said = complaint(&idle, &idle.router).await;
    assert!(said.contains("had 0 effects"), "{said}");

    // All processed deliveries are forgotten before each request.
    let forgetful = TestApp::github(write_effect).await;
    let forget = "delete from idempotent_webhook.deliveries";
    let delivery = github_delivery();
    let asserted = assert_idempotent(&forgetful.router, &delivery, async || {
        forgetful.database.run(forget).await;
        effects(&forgetful).await
    });
    assert_eq!(
        message(asserted).await,
        "the delivery had been processed, was sent again and had 1 more effects"
    );

    let failing = TestApp::github(async |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await.unwrap();
        HandlerError::new("no such order").status(StatusCode::CONFLICT)
    })
    .await;
    assert_eq!(
        complaint(&failing, &failing.router).await,
        "the delivery was answered with 409 Conflict, outcome failed, reason: no such order"
    );

    let refused = TestApp::of(
        presets::github(Secret::new("another").unwrap()),
        write_effect,
    )
    .await;
    assert_eq!(
        complaint(&refused, &refused.router).await,
        "the delivery was answered with 401 Unauthorized, outcome rejected, reason: signature \
         matches none of the secrets: another secret, or a body that was changed on the way, \
         text: signature missing or not valid"
    );

    let not_migrated = TestApp::github(write_effect).await;
    let drop = "drop schema idempotent_webhook cascade";
    not_migrated.database.run(drop).await;
    let delivery = github_delivery();
    let asserted = assert_idempotent(&not_migrated.router, &delivery, async || 0);
    let said = message(asserted).await;
    assert!(
        said.contains("has `idempotent_webhook::migrate` been run?"),
        "{said}"
    );

    let known = TestApp::github(write_effect).await;
    known.send(github_delivery().request()).await;
    let said = complaint(&known, &known.router).await;
    assert!(said.contains("was processed before"), "{said}");
}

/// The worst mistake: the handler takes `DedupeTx`, but makes some of its writes through the pool.
#[tokio::test(flavor = "multi_thread")]
async fn the_assertion_finds_writes_past_the_transaction() {
    for through_tx in [false, true] {
        let app = TestApp::github(write_effect).await;
        let pool = app.database.pool.clone();
        let mixed = async move |mut tx: DedupeTx, delivery: Delivery| {
            if through_tx {
                insert_effect(&mut tx, &delivery).await.unwrap();
            }
            sqlx::query("insert into effects values ('past')")
                .execute(&pool)
                .await
                .unwrap();
        };
        let router = app.elsewhere(mixed).await;
        let said = complaint(&app, &router).await;
        assert!(said.contains("1 of its effects remain"), "{said}");
        assert_rows!(app.database, claims: 0, effects: 1);
    }
}

/// A handler whose writes are idempotent in themselves need not use the transaction.
#[tokio::test(flavor = "multi_thread")]
async fn writes_elsewhere_pass_if_the_layer_allows_them() {
    let app = TestApp::github(write_effect).await;
    let pool = app.database.pool.clone();
    let elsewhere = async move || {
        sqlx::query(
            "insert into effects select 'elsewhere'
             where not exists (select from effects)",
        )
        .execute(&pool)
        .await
        .unwrap();
    };
    let allow = IdempotentWebhook::allow_unused_transaction;
    let router = app.elsewhere_with(allow, elsewhere).await;
    assert_idempotent(&router, &github_delivery(), async || effects(&app).await).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The commit of a savepoint is easily forgotten, and then its writes are lost.
#[tokio::test(flavor = "multi_thread")]
async fn the_assertion_finds_a_savepoint_that_was_not_committed() {
    let app = TestApp::github(async |mut tx: DedupeTx, delivery: Delivery| {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let mut savepoint = tx.begin().await.unwrap();
        sqlx::query("insert into effects values ('lost')")
            .execute(&mut *savepoint)
            .await
            .unwrap();
    })
    .await;
    let said = complaint(&app, &app.router).await;
    assert!(said.contains("has dropped a savepoint"), "{said}");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Another request holds the delivery in flight, so the layer answers 503. The assertion must not
/// mistake this answer for the layer's report that there is nothing to roll back.
#[tokio::test(flavor = "multi_thread")]
async fn the_assertion_finds_a_delivery_that_is_in_flight() {
    let (mut gate, handler) = gated();
    let at_once = |layer: IdempotentWebhook| layer.in_flight_timeout(Duration::ZERO);
    let app = TestApp::github_with(at_once, handler).await;
    let mut running = Some(spawn_send(&app.router, github_delivery().request()));
    gate.reached().await;
    let mut counts = 0;
    let said = message(assert_idempotent(
        &app.router,
        &github_delivery(),
        async || {
            counts += 1;
            // The effects are counted a second time only if the first step has passed.
            if counts == 2 {
                gate.open();
                running.take().unwrap().await.unwrap();
            }
            effects(&app).await
        },
    ))
    .await;
    assert!(said.contains("outcome in-flight"), "{said}");
    assert_eq!(app.runs(), 1);
    gate.open();
    assert_eq!(running.unwrap().await.unwrap().outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// GitHub puts the action into the body.
#[tokio::test]
async fn a_type_with_an_action_is_sent_as_the_provider_sends_it() {
    let app = TestApp::github(write_effect).await;
    let opened = github_delivery()
        .event_type("pull_request.opened")
        .body(r#"{"number":1}"#);
    let (head, body) = opened.request::<Bytes>().into_parts();
    assert_eq!(head.headers["x-github-event"], "pull_request");
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body, serde_json::json!({"number": 1, "action": "opened"}));
    assert_eq!(app.send(opened.request()).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}
