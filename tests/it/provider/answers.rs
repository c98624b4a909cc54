//! Guarantee P7: if a delivery succeeds, the layer gives an answer that its provider counts as a
//! success. If it fails, the layer gives an answer after which the provider retries.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, Request, Response, StatusCode};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use idempotent_webhook::presets::{CircleKeys, PublicKey};
use idempotent_webhook::provider::signature::BasicCredentials;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Delivery, Provider, Secret, presets};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{
    Failing, TestApp, answer, assert_rows, gated, insert_effect, keep, keep_accepted, secret, soon,
    spawn_send, write_effect,
};

/// The complete response, with its body.
async fn respond(app: &TestApp, delivery: &TestDelivery) -> Response<String> {
    let request: Request<Body> = delivery.request();
    let sent: Result<_, Infallible> = app.router.clone().oneshot(request).await;
    let (head, body) = sent.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(head, String::from_utf8(body.into()).unwrap())
}

/// A handler that writes one effect, and answers with the status that the body names.
async fn as_told(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(told): Json<Value>,
) -> impl IntoResponse {
    insert_effect(&mut tx, &delivery).await.unwrap();
    let status = told["answer"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok());
    let status = StatusCode::from_u16(status.unwrap()).unwrap();
    (
        status,
        [(HeaderName::from_static("x-handler"), "here")],
        "text",
    )
}

fn telling(provider: &Provider, id: &str, status: u16) -> TestDelivery {
    TestDelivery::new(provider)
        .id(id)
        .body(json!({"answer": status}).to_string())
}

/// A delivery for a provider whose id is derived from the body instead of being set.
fn untold(provider: &Provider, status: u16) -> TestDelivery {
    TestDelivery::new(provider).body(json!({"answer": status}).to_string())
}

#[tokio::test]
async fn xeros_intent_to_receive_gets_200_or_401_and_no_body() {
    let xero = presets::xero(secret());
    let app = TestApp::of(xero.clone(), as_told).await;
    let intent = |handler: u16| {
        let body = json!({
            "events": [], "firstEventSequence": 0, "lastEventSequence": 0, "entropy": "e",
            "answer": handler,
        });
        TestDelivery::new(&xero).body(body.to_string())
    };
    for (delivery, status, outcome) in [
        (intent(204), 200, "processed"),
        (intent(200), 200, "processed"),
        (intent(200), 200, "duplicate"),
        (intent(200).tampered(), 401, "rejected"),
        (intent(200).unsigned(), 401, "rejected"),
    ] {
        let response = respond(&app, &delivery).await;
        assert_eq!(response.status(), status, "{outcome}");
        assert_eq!(response.headers()["x-webhook-outcome"], outcome);
        assert_eq!(response.body(), "", "{outcome}");
        assert!(!response.headers().contains_key(CONTENT_TYPE), "{outcome}");
    }
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn zendesk_hears_of_each_failure_with_a_503_that_it_retries() {
    let zendesk = presets::zendesk(secret());
    let app = TestApp::of(zendesk.clone(), as_told).await;
    for status in [302, 400, 404, 429, 500, 502] {
        let response = respond(&app, &telling(&zendesk, "a", status)).await;
        assert_eq!(response.status(), 503, "{status}");
        let after = response.headers()[RETRY_AFTER].to_str().unwrap();
        assert!((1..60).contains(&after.parse::<u32>().unwrap()), "{after}");
        assert_eq!(response.headers()["x-webhook-outcome"], "failed");
        // Everything else comes from the handler.
        assert_eq!(response.headers()["x-handler"], "here");
        assert_eq!(response.body(), "text");
        assert_rows!(app.database, claims: 0, effects: 0);
    }
    let answered = app.send(telling(&zendesk, "a", 200).request()).await;
    assert_eq!(answered, answer(200, "processed", "text"));
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn p7_zendesk_hears_of_a_panic_and_of_a_wrong_signature_with_a_503() {
    async fn panics(_: DedupeTx) -> StatusCode {
        panic!("on purpose");
    }
    let zendesk = presets::zendesk(secret());
    let app = TestApp::of(zendesk.clone(), panics).await;
    let delivery = telling(&zendesk, "a", 200);
    assert_eq!(
        app.send(delivery.request()).await,
        answer(503, "failed", "internal error")
    );
    assert_eq!(
        app.send(delivery.tampered().request()).await,
        answer(503, "rejected", "signature missing or not valid")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn a_delivery_in_flight_is_a_failure_for_now() {
    let conflict = presets::zendesk(secret()).failure_status(StatusCode::CONFLICT);
    let (mut gate, handler) = gated();
    let set = |layer: idempotent_webhook::IdempotentWebhook| {
        layer.in_flight_timeout(std::time::Duration::ZERO)
    };
    let app = TestApp::with(conflict.clone(), set, handler).await;
    let first = spawn_send(&app.router, telling(&conflict, "a", 200).request());
    soon(gate.reached()).await;
    let second = app.send(telling(&conflict, "a", 200).request()).await;
    assert_eq!((second.status, &*second.outcome), (409, "in-flight"));
    gate.open();
    assert_eq!(first.await.unwrap().outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn a_retry_after_of_the_handler_is_left_as_it_is() {
    async fn later(_: DedupeTx) -> impl IntoResponse {
        (StatusCode::INTERNAL_SERVER_ERROR, [(RETRY_AFTER, "17")])
    }
    let zendesk = presets::zendesk(secret());
    let app = TestApp::of(zendesk.clone(), later).await;
    let response = respond(&app, &telling(&zendesk, "a", 200)).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "17");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// After a 4xx, Postmark drops the event, and after a 403, it stops sending for good.
#[tokio::test]
async fn postmark_never_hears_of_a_4xx() {
    let postmark = presets::postmark("user:password".parse::<BasicCredentials>().unwrap());
    let app = TestApp::of(postmark.clone(), as_told).await;
    for (id, told, status, outcome) in [
        ("a", 404, 503, "failed"),
        ("a", 422, 503, "failed"),
        ("a", 204, 200, "processed"),
        ("b", 403, 503, "failed"),
        ("b", 200, 200, "processed"),
    ] {
        let answered = app.send(telling(&postmark, id, told).request()).await;
        assert_eq!((answered.status, &*answered.outcome), (status, outcome));
    }
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn each_success_has_the_status_that_the_provider_takes() {
    for preset in [
        "meta",
        "mailgun",
        "quickbooks",
        "okta",
        "airtable",
        "linear",
    ] {
        let preset = presets::by_name(preset).unwrap();
        let provider = preset.provider(Secret::new("YWJj").unwrap());
        let app = TestApp::of(provider.clone(), as_told).await;
        let delivery = TestDelivery::new(&provider)
            .body(json!({"answer": 204, "eventId": "e", "event-data": {"id": "e"}}).to_string());
        // The signing time is part of the signature.
        let delivery = delivery.at(std::time::SystemTime::now());
        for outcome in ["processed", "duplicate"] {
            let answered = app.send(delivery.request()).await;
            assert_eq!((answered.status, &*answered.outcome), (200, outcome));
        }
        assert_rows!(app.database, claims: 1, effects: 1, "{}", preset.name());
    }
}

fn discord() -> Provider {
    // The private key, followed by the public key.
    let pair = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    presets::discord(PublicKey::new(pair).unwrap())
}

fn discord_event() -> TestDelivery {
    let event = json!({"type": "ENTITLEMENT_CREATE", "timestamp": "2025-06-15T15:06:40Z"});
    TestDelivery::new(&discord()).body(json!({"type": 1, "event": event}).to_string())
}

#[tokio::test]
async fn discords_events_are_acknowledged_with_204_and_interactions_answered_by_the_handler() {
    let app = TestApp::of(discord(), write_effect).await;
    let interaction =
        TestDelivery::new(&discord()).body(json!({"type": 2, "id": "i1"}).to_string());
    for (delivery, expected) in [
        (&interaction, answer(200, "processed", "done")),
        (&discord_event(), answer(200, "processed", "done")),
        (&discord_event(), answer(204, "duplicate", "")),
    ] {
        assert_eq!(app.send(delivery.request()).await, expected);
    }
    assert_rows!(app.database, claims: 2, effects: 2);

    let events_alone = discord().success_status(StatusCode::NO_CONTENT);
    let app = TestApp::of(events_alone, write_effect).await;
    let response = respond(&app, &discord_event()).await;
    assert_eq!(response.status(), 204);
    assert_eq!(response.headers()["x-webhook-outcome"], "processed");
    assert!(!response.headers().contains_key(CONTENT_TYPE));
    assert_eq!(response.body(), "");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn a_delivery_that_is_accepted_or_kept_is_acknowledged_with_the_providers_status() {
    let app = TestApp::recovered(
        discord(),
        |layer, recovery| layer.keep(keep_accepted(recovery)),
        write_effect,
    )
    .await;
    assert_eq!(
        app.send(discord_event().request()).await,
        answer(204, "accepted", "")
    );
    app.database
        .until("1 = (select count(*) from effects)")
        .await;
    assert_rows!(app.database, claims: 1, effects: 1);

    let failing = Failing::times(1).handler();
    let app = TestApp::recovered(
        discord(),
        |layer, recovery| layer.keep(keep(recovery).acknowledge()),
        failing,
    )
    .await;
    assert_eq!(
        app.send(discord_event().request()).await,
        answer(204, "kept", "")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn discords_pings_have_a_content_type() {
    let app = TestApp::of(discord(), write_effect).await;
    let ping = |body: Value| TestDelivery::new(&discord()).body(body.to_string());
    for (sent, status, body) in [
        (json!({"type": 0}), 204, ""),
        (json!({"type": 1, "id": "p1"}), 200, r#"{"type":1}"#),
    ] {
        let response = respond(&app, &ping(sent)).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(response.body(), body);
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn intercoms_test_which_has_no_id_is_answered() {
    let intercom = presets::intercom(secret());
    let app = TestApp::of(intercom.clone(), write_effect).await;
    let event = |topic: &str, has_null_id: bool| {
        let mut body = json!({"type": "notification_event", "topic": topic});
        if has_null_id {
            body["id"] = Value::Null;
        }
        // The exact bytes matter: the test kit would fill in the id.
        let request = Request::post("/").body(body.to_string().into()).unwrap();
        let now = std::time::SystemTime::now();
        idempotent_webhook::testing::sign(&intercom, &secret(), request, now)
            .unwrap()
            .map(Body::from)
    };
    // The provider's own tests, of the whole webhook and of one topic.
    for topic in ["ping", "user.created"] {
        let sent = app.send(event(topic, true)).await;
        assert_eq!(sent, answer(200, "handshake", ""));
    }
    let other = app.send(event("user.created", false)).await;
    assert_eq!((other.status, &*other.outcome), (503, "rejected"));
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Wise waits for the time in `Retry-After` instead of its own, longer intervals. With a few
/// seconds in that header, it would soon use up all retries.
#[cfg(feature = "rsa")]
#[tokio::test]
async fn wise_hears_of_each_failure_with_a_500_that_says_no_time() {
    let wise = presets::wise(PublicKey::new(include_str!("../../keys/rsa.pem")).unwrap());
    let (mut gate, handler) = gated();
    let set = |layer: idempotent_webhook::IdempotentWebhook| {
        layer.in_flight_timeout(std::time::Duration::ZERO)
    };
    let app = TestApp::with(wise.clone(), set, handler).await;
    let first = spawn_send(&app.router, untold(&wise, 200).request());
    soon(gate.reached()).await;
    let second = respond(&app, &untold(&wise, 200)).await;
    assert_eq!(second.status(), 500);
    assert_eq!(second.headers()["x-webhook-outcome"], "in-flight");
    assert!(!second.headers().contains_key(RETRY_AFTER));
    gate.open();
    assert_eq!(first.await.unwrap().outcome, "processed");

    let app = TestApp::of(wise.clone(), as_told).await;
    for status in [400, 404, 429, 503] {
        let response = respond(&app, &untold(&wise, status)).await;
        assert_eq!(response.status(), 500, "{status}");
        assert!(!response.headers().contains_key(RETRY_AFTER), "{status}");
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[cfg(feature = "p256")]
#[tokio::test]
async fn circle_hears_of_each_success_with_a_200() {
    let circle = presets::circle(CircleKeys::given(include_str!("../../keys/p256.pem")).unwrap());
    let app = TestApp::of(circle.clone(), as_told).await;
    for outcome in ["processed", "duplicate"] {
        let answered = app.send(telling(&circle, "a", 204).request()).await;
        assert_eq!((answered.status, &*answered.outcome), (200, outcome));
    }
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// According to the specification, a 410 makes the sender give up the endpoint.
#[tokio::test]
async fn a_sender_of_cloudevents_never_hears_that_the_endpoint_is_gone() {
    let cloudevents = presets::cloudevents(secret());
    let app = TestApp::of(cloudevents.clone(), as_told).await;
    let response = respond(&app, &untold(&cloudevents, 410)).await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key(RETRY_AFTER));
    assert_rows!(app.database, claims: 0, effects: 0);
}
