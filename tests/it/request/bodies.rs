//! Guarantee G9: the size of a body and the time to receive it are limited. Within these limits,
//! the whole body reaches axum's extractors.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::Form;
use axum::http::{HeaderValue, Request, StatusCode};
use futures_util::StreamExt;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, presets};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{
    TestApp, answer, assert_rows, github, insert_effect, secret, send, wire, write_effect,
};

/// A valid JSON document of `length` bytes.
fn json(length: usize) -> String {
    format!("\"{}\"", "a".repeat(length - 2))
}

#[tokio::test]
async fn g9_a_large_body_reaches_a_json_handler() {
    async fn length(mut tx: DedupeTx, delivery: Delivery, Json(text): Json<String>) -> String {
        insert_effect(&mut tx, &delivery).await.unwrap();
        text.len().to_string()
    }
    let app = TestApp::github(length).await;
    let size = 20 * 1024 * 1024;
    assert_eq!(
        app.send(github("a", json(size))).await,
        answer(200, "processed", &(size - 2).to_string())
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn a_form_reaches_a_form_handler() {
    let app = TestApp::github(async |Form(form): Form<Vec<(String, String)>>| form[0].1.clone());
    let app = app.await;
    let mut request = github("a", "payload=%7B%7D");
    request.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    assert_eq!(app.send(request).await, answer(200, "processed", "{}"));
}

#[tokio::test]
async fn g9_a_body_over_the_limit_is_a_413() {
    let provider = presets::github(secret()).body_limit(1000);
    let app = TestApp::of(provider, write_effect).await;
    let too_large = answer(413, "rejected", "the body is too large");
    assert_eq!(app.send(github("a", json(1001))).await, too_large);

    // Sent without a length, and in pieces.
    let body = json(1001);
    let pieces: Vec<_> = body
        .as_bytes()
        .chunks(100)
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
        .collect();
    let stream = Body::from_stream(stream_of(pieces));
    let (head, _) = github("a", body).into_parts();
    assert_eq!(app.send(Request::from_parts(head, stream)).await, too_large);
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);

    assert_eq!(app.send(github("a", json(1000))).await.status, 200);
    assert_rows!(app.database, claims: 1, effects: 1);
}

fn stream_of<T: Send + 'static>(
    items: Vec<T>,
) -> impl futures_util::Stream<Item = T> + Send + 'static {
    let mut items = items.into_iter();
    futures_util::stream::poll_fn(move |_| std::task::Poll::Ready(items.next()))
}

#[tokio::test]
async fn a_limit_of_tower_http_is_a_413_as_well() {
    let app = TestApp::github(write_effect).await;
    let router = app
        .router
        .clone()
        .layer(tower_http::limit::RequestBodyLimitLayer::new(1000));
    let (head, body) = github("a", json(1001)).into_parts();
    // Sent without a length, so that tower-http does not refuse the request because of its head.
    let body = Body::from_stream(stream_of(vec![
        axum::body::to_bytes(body, usize::MAX).await,
    ]));
    let answered = send(&router, Request::from_parts(head, body)).await;
    assert_eq!(answered, answer(413, "rejected", "the body is too large"));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Sends a head and then pieces of a body, with a pause before each piece. Returns the response.
async fn talk(address: SocketAddr, head: &str, pieces: &[&str], pause: Duration) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for piece in pieces {
        tokio::time::sleep(pause).await;
        if stream.write_all(piece.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut response = Vec::new();
    let mut buffer = [0; 1024];
    // Reads until the response has its head and a short body, which come in one piece.
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        response.extend_from_slice(&buffer[..length]);
        if String::from_utf8_lossy(&response).contains("\r\n\r\n") {
            break;
        }
    }
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn g9_a_content_length_over_the_limit_is_refused_unread() {
    let app = TestApp::github(write_effect).await;
    let address = app.serve().await;
    let response = talk(address, &wire("a", "", 1 << 30), &[], Duration::ZERO).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert!(response.contains("x-webhook-outcome: rejected"));
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g1_a_request_without_a_signature_is_refused_unread() {
    let app = TestApp::github(write_effect).await;
    let address = app.serve().await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
    let response = talk(address, head, &[], Duration::ZERO).await;
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g9_a_body_that_trickles_is_a_408() {
    let app = TestApp::github_with(
        |layer| layer.body_timeout(Duration::from_millis(300)),
        write_effect,
    )
    .await;
    let address = app.serve().await;
    // Each byte comes soon after the previous one, so only a limit on the whole body helps.
    let pieces = ["a"; 100];
    let pause = Duration::from_millis(20);
    let response = talk(address, &wire("a", "", pieces.len()), &pieces, pause).await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(response.contains("x-webhook-outcome: rejected"));
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_400() {
    let app = TestApp::github(write_effect).await;
    let (head, _) = github("a", "{}").into_parts();
    let broken = Body::from_stream(stream_of(vec![
        Ok("{"),
        Err(std::io::Error::other("reset by peer")),
    ]));
    assert_eq!(
        app.send(Request::from_parts(head, broken)).await,
        answer(400, "rejected", "the body broke off")
    );
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// SNS, Brevo and Event Grid do not retry after the usual 4xx, so the layer answers their
/// unreadable requests with another status.
#[tokio::test]
async fn p7_a_request_that_cannot_be_read_gets_the_status_after_which_the_provider_retries() {
    let provider = presets::github(secret()).failure_status(StatusCode::TOO_MANY_REQUESTS);
    let timeout = Duration::from_millis(300);
    let set = |layer: IdempotentWebhook| layer.body_timeout(timeout);
    let app = TestApp::with(provider, set, write_effect).await;
    let broken = || Err(std::io::Error::other("reset by peer"));
    let pending =
        stream_of(vec![Ok::<_, std::io::Error>("{")]).chain(futures_util::stream::pending());
    for (body, reason) in [
        (
            Body::from_stream(stream_of(vec![Ok("{"), broken()])),
            "the body broke off",
        ),
        (Body::from_stream(pending), "the body took too long"),
    ] {
        let (head, _) = github("a", "{}").into_parts();
        let sent = app.send(Request::from_parts(head, body)).await;
        assert_eq!(
            (sent.status, &*sent.outcome, &*sent.body),
            (429, "rejected", reason)
        );
        assert!(sent.retry_after);
    }
    // The operator can raise the limit or change the source of the id, so the provider should also
    // retry these requests.
    let large = app.send(github("a", vec![b'a'; 26 * 1024 * 1024])).await;
    assert_eq!((large.status, &*large.outcome), (429, "rejected"));
    let nameless = app.send(github(" ", "{}")).await;
    assert_eq!((nameless.status, &*nameless.outcome), (429, "rejected"));
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn an_empty_body_is_a_body() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(app.send(github("a", "")).await.status, 200);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn a_body_that_the_handler_refuses_is_rolled_back() {
    async fn typed(mut tx: DedupeTx, delivery: Delivery, Json(_): Json<Vec<u8>>) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        StatusCode::OK
    }
    let app = TestApp::github(typed).await;
    let answered = app.send(github("a", "{}")).await;
    assert_eq!(
        (answered.status, answered.outcome.as_str()),
        (422, "failed")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.send(github("a", "[1]")).await.status, 200);
    assert_rows!(app.database, claims: 1, effects: 1);
}
