//! The program for AWS Lambda, against a runtime API that this test serves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use idempotent_webhook::testing::TestDelivery;
use race::{Database, Process, delivery};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// The events that the program gets, and the answers that it sends.
struct Runtime {
    events: Mutex<Receiver<Value>>,
    answers: Sender<Value>,
}

async fn next(State(runtime): State<Arc<Runtime>>) -> (HeaderMap, Json<Value>) {
    let event = runtime.events.lock().await.recv().await;
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("lambda-runtime-aws-request-id", "1"),
        ("lambda-runtime-deadline-ms", "32503680000000"),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:::webhooks",
        ),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    (headers, Json(event.expect("the test goes on")))
}

async fn answer(
    State(runtime): State<Arc<Runtime>>,
    Path((_, kind)): Path<(String, String)>,
    // The content type of the answer is not JSON, so the `Json` extractor would refuse it.
    answer: Bytes,
) {
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(kind, "response", "{answer}");
    runtime.answers.send(answer).await.unwrap();
}

/// The form in which a function URL and an HTTP API pass a request on.
fn event(delivery: &TestDelivery) -> Value {
    let (head, body) = delivery.request::<Vec<u8>>().into_parts();
    let headers: HashMap<&str, &str> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/webhooks/stripe",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "http": { "method": "POST", "path": "/webhooks/stripe", "sourceIp": "127.0.0.1" },
            "stage": "$default",
            "timeEpoch": 0,
        },
        "body": String::from_utf8(body).unwrap(),
        "isBase64Encoded": false,
    })
}

#[tokio::test]
async fn lambda() {
    let database = Database::new().await;
    let (send, events) = channel(1);
    let (answers, mut answered) = channel(1);
    let runtime = Arc::new(Runtime {
        events: Mutex::new(events),
        answers,
    });
    let router = Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/{kind}", post(answer))
        .with_state(runtime);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(axum::serve(listener, router).into_future());
    let variables = [
        ("AWS_LAMBDA_RUNTIME_API", address.as_str()),
        ("AWS_LAMBDA_FUNCTION_NAME", "webhooks"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
    ];
    let function = Process::spawn("lambda", &database, &variables);

    let mut invoke = async |delivery: &TestDelivery| {
        send.send(event(delivery)).await.unwrap();
        let answer = timeout(Duration::from_secs(60), answered.recv()).await;
        let answer = answer.expect("it answers").unwrap();
        let outcome = answer["headers"]["x-webhook-outcome"].as_str();
        format!("{} {}", answer["statusCode"], outcome.unwrap_or_default())
    };
    assert_eq!(invoke(&delivery("evt_1").tampered()).await, "401 rejected");
    assert_eq!(invoke(&delivery("evt_1")).await, "200 processed");
    assert_eq!(invoke(&delivery("evt_1")).await, "200 duplicate");
    assert_eq!(database.number("select count(*) from payments").await, 1);

    // A failed delivery is kept for a process that is not frozen.
    database.run("alter table payments rename to away").await;
    assert_eq!(invoke(&delivery("evt_2")).await, "500 kept");
    let due = "select count(*) from idempotent_webhook.kept_deliveries where state = 'due'";
    assert_eq!(database.number(due).await, 1);
    database.until_no_transaction_is_open().await;
    function.kill().await;
}
