//! Keys at addresses that the requests name, as with AWS SNS, and its handshake.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use bytes::Bytes;
use futures_util::future::join_all;
use idempotent_webhook::Provider;
use idempotent_webhook::presets::{self, SnsTopic};
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::testing::TestDelivery;
use serde_json::{Value, json};

use super::server::{Answering, KeyServer};
use super::{REFUSED, UNAVAILABLE};
use crate::support::{TestApp, answer, assert_rows, logged, write_effect};

const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:orders";
/// A private key, and its certificate for `sns.amazonaws.com`.
const KEYS: &str = include_str!("../../keys/sns.pem");
const CONFIRM: &str = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=t";

fn sns(topic: &str) -> Provider {
    presets::aws_sns(SnsTopic::new(topic).unwrap())
}

/// An SNS message with these members in addition to the usual ones.
fn message(topic: &str, members: &Value) -> Request<Body> {
    let signer = sns(topic).keys(KeySource::given(KEYS).unwrap());
    TestDelivery::new(&signer)
        .body(members.to_string())
        .request()
}

fn notification(id: &str) -> Request<Body> {
    message(TOPIC, &json!({"MessageId": id, "Message": "{}"}))
}

fn at(address: &str) -> Request<Body> {
    message(
        TOPIC,
        &json!({"MessageId": "forged", "SigningCertURL": address}),
    )
}

fn certificate(name: u32) -> String {
    format!("https://sns.us-east-1.amazonaws.com/SimpleNotificationService-{name:032x}.pem")
}

/// The message that SNS sends when somebody subscribes.
fn confirmation(topic: &str, url: &str) -> Request<Body> {
    let kind = "SubscriptionConfirmation";
    let members = json!({"Type": kind, "Token": "t", "SubscribeURL": url, "Message": "m"});
    message(topic, &members)
}

async fn app() -> (TestApp, KeyServer) {
    let server = KeyServer::new(Answering::Text(KEYS.to_owned())).await;
    let provider = sns(TOPIC).keys(server.source());
    (TestApp::of(provider, write_effect).await, server)
}

/// How many confirmation addresses were visited.
fn visits(server: &KeyServer) -> usize {
    let asked = server.asked();
    asked.iter().filter(|url| url.contains("Action")).count()
}

#[tokio::test]
async fn f1_new_addresses_in_a_flood_of_forged_requests_are_bounded() {
    let (app, server) = app().await;
    assert_eq!(
        app.send(notification("a")).await,
        answer(200, "processed", "done")
    );
    server.answer(Answering::Broken);
    let forged = (1..200).map(|name| {
        let body = json!({
            "Type": "Notification", "Message": "", "MessageId": "forged", "TopicArn": TOPIC,
            "Timestamp": "2026-01-01T00:00:00.000Z", "SignatureVersion": "2",
            "Signature": "AAAA", "SigningCertURL": certificate(name),
        });
        Request::post("/")
            .body(Body::from(body.to_string()))
            .unwrap()
    });
    for got in join_all(forged.map(|request| app.send(request))).await {
        assert_eq!(got, answer(503, "rejected", UNAVAILABLE));
    }
    assert_eq!(server.asked().len(), 1 + 10);
    // The known certificate is still used.
    assert_eq!(
        app.send(notification("b")).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn f1_no_host_but_the_providers_own_is_asked() {
    let (app, server) = app().await;
    for wrong in [
        "https://sns.us-east-1.amazonaws.com.evil.test/SimpleNotificationService-0f.pem",
        "https://sns.us-east-1.amazonaws.com@evil.test/SimpleNotificationService-0f.pem",
        "https://user:password@sns.us-east-1.amazonaws.com/SimpleNotificationService-0f.pem",
        "https://sns.us-east-1.amazonaws.com:444/SimpleNotificationService-0f.pem",
        "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-0f.pem",
        "https://sns.us-east-1.amazonaws.com/?Action=Publish&x=.pem",
        "https://sns.s3-us-west-2.amazonaws.com/SimpleNotificationService-0f.pem",
        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0f.pem",
        "https://s3.amazonaws.com/SimpleNotificationService-0f.pem",
        "https://169.254.169.254/SimpleNotificationService-0f.pem",
        "file:///SimpleNotificationService-0f.pem",
    ] {
        let log = logged(async {
            assert_eq!(
                app.send(at(wrong)).await,
                answer(503, "rejected", REFUSED),
                "{wrong}"
            );
        })
        .await;
        assert!(
            log.contains("its certificate is not at SNS's address"),
            "{log}"
        );
    }
    assert!(server.asked().is_empty());
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn a_subscription_to_our_topic_is_confirmed_and_no_other() {
    let (app, server) = app().await;
    let visits = || visits(&server);

    let elsewhere = "https://evil.test/?Action=ConfirmSubscription&Token=t";
    for request in [
        confirmation("arn:aws:sns:us-east-1:1:evil", CONFIRM),
        confirmation(TOPIC, elsewhere),
    ] {
        assert_eq!(app.send(request).await, answer(503, "rejected", REFUSED));
    }
    assert_eq!(visits(), 0);
    let confirmed = app.send(confirmation(TOPIC, CONFIRM)).await;
    assert_eq!(confirmed, answer(200, "handshake", ""));
    assert_eq!(visits(), 1);

    // If somebody sends a captured confirmation again, its address is not visited again.
    let confirmed = app.send(confirmation(TOPIC, CONFIRM)).await;
    assert_eq!(confirmed, answer(200, "handshake", ""));
    assert_eq!(visits(), 1);

    // SNS sends the confirmation again.
    server.answer(Answering::Broken);
    let failed = app.send(confirmation(TOPIC, &format!("{CONFIRM}2"))).await;
    assert_eq!(failed, answer(503, "failed", UNAVAILABLE));

    let ended = json!({
        "Type": "UnsubscribeConfirmation", "Token": "t", "SubscribeURL": CONFIRM, "Message": "m",
    });
    let before = visits();
    assert_eq!(
        app.send(message(TOPIC, &ended)).await,
        answer(200, "handshake", "")
    );
    assert_eq!(visits(), before, "it would subscribe again");
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn f1_copies_of_a_confirmation_cost_one_visit() {
    let (app, server) = app().await;
    let send_copies = |url: String| {
        let copies = (0..50).map(move |_| confirmation(TOPIC, &url));
        join_all(copies.map(|request| app.send(request)))
    };
    for got in send_copies(CONFIRM.to_owned()).await {
        assert_eq!(got, answer(200, "handshake", ""));
    }
    assert_eq!(visits(&server), 1);

    let refused = format!("{CONFIRM}2");
    for (answering, url) in [
        (Answering::Broken, format!("{CONFIRM}1")),
        (Answering::Refusing, refused.clone()),
    ] {
        server.answer(answering);
        for got in send_copies(url).await {
            assert_eq!(got, answer(503, "failed", UNAVAILABLE));
        }
    }
    let got = app.send(confirmation(TOPIC, &refused)).await;
    assert_eq!(got, answer(503, "failed", UNAVAILABLE));
    assert_eq!(visits(&server), 3);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn f1_a_client_that_panics_in_a_visit_has_failed() {
    let client = |request: Request<Bytes>| async move {
        assert!(!request.uri().path().ends_with('/'), "no visits");
        Ok(Response::new(KEYS.into()))
    };
    let provider = sns(TOPIC).keys(KeySource::fetched(client));
    let app = TestApp::of(provider, write_effect).await;
    let log = logged(async {
        let got = app.send(confirmation(TOPIC, CONFIRM)).await;
        assert_eq!(got, answer(503, "failed", UNAVAILABLE));
    })
    .await;
    assert!(log.contains("the client panicked: no visits"), "{log}");
    let got = app.send(notification("a")).await;
    assert_eq!(got, answer(200, "processed", "done"));
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The application's function confirms the subscription, as the HTTP client would.
#[tokio::test]
async fn f1_copies_of_a_confirmation_call_the_function_of_the_application_once() {
    let told = Arc::new(Mutex::new(0));
    let provider = sns(TOPIC).keys(KeySource::given(KEYS).unwrap());
    let provider = provider.confirm_subscription({
        let told = told.clone();
        move |url| {
            *told.lock().unwrap() += 1;
            async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                assert_eq!(url, CONFIRM, "on purpose");
                Ok(())
            }
        }
    });
    let app = TestApp::of(provider, write_effect).await;
    let send_copies = |url: String| {
        let copies = (0..30).map(move |_| confirmation(TOPIC, &url));
        join_all(copies.map(|request| app.send(request)))
    };
    for got in send_copies(CONFIRM.to_owned()).await {
        assert_eq!(got, answer(200, "handshake", ""));
    }
    assert_eq!(*told.lock().unwrap(), 1);
    for got in send_copies(format!("{CONFIRM}2")).await {
        assert_eq!(got, answer(503, "failed", UNAVAILABLE));
    }
    assert_eq!(*told.lock().unwrap(), 2);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The same test as in the guide.
#[tokio::test]
async fn the_kit_makes_a_confirmation_of_its_type_alone() {
    let visited = Arc::new(Mutex::new(Vec::new()));
    let visit = visited.clone();
    let provider = sns(TOPIC).keys(KeySource::given(KEYS).unwrap());
    let provider = provider.confirm_subscription(move |url| {
        visit.lock().unwrap().push(url);
        async { Ok(()) }
    });
    let app = TestApp::of(provider, write_effect).await;
    let confirmation = message(TOPIC, &json!({"Type": "SubscriptionConfirmation"}));
    assert_eq!(app.send(confirmation).await, answer(200, "handshake", ""));
    let url = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription\
               &TopicArn=arn:aws:sns:us-east-1:123456789012:orders&Token=token";
    assert_eq!(*visited.lock().unwrap(), [url]);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[test]
fn the_kit_signs_for_a_topic_of_any_region() {
    let topic = "arn:aws:sns:eu-central-1:123456789012:orders";
    let provider = sns(topic).keys(KeySource::given(KEYS).unwrap());
    let (head, body) = message(topic, &json!({"Message": "m"})).into_parts();
    let body = futures_util::FutureExt::now_or_never(http_body_util::BodyExt::collect(body));
    let body = body.unwrap().unwrap().to_bytes();
    let verified = provider.verify(&head, &body, std::time::SystemTime::now());
    assert!(verified.is_ok(), "{verified:?}");
}

#[tokio::test]
async fn a_subscription_is_confirmed_as_the_application_says() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let provider = sns(TOPIC).keys(KeySource::given(KEYS).unwrap());
    let unset = TestApp::of(provider.clone(), write_effect).await;
    let provider = provider.confirm_subscription({
        let told = told.clone();
        move |url| {
            told.lock().unwrap().push(url);
            async { Ok(()) }
        }
    });
    let app = TestApp::of(provider, write_effect).await;
    let kind = "SubscriptionConfirmation";
    let members = json!({"Type": kind, "Token": "t", "SubscribeURL": CONFIRM, "Message": "m"});
    let confirmed = app.send(message(TOPIC, &members)).await;
    assert_eq!(confirmed, answer(200, "handshake", ""));
    assert_eq!(*told.lock().unwrap(), [CONFIRM]);
    assert_rows!(app.database, claims: 0, effects: 0);

    let log = logged(async {
        let failed = unset.send(message(TOPIC, &members)).await;
        assert_eq!(failed, answer(503, "failed", UNAVAILABLE));
    })
    .await;
    assert!(
        log.contains("set `Provider::confirm_subscription`"),
        "{log}"
    );
}
