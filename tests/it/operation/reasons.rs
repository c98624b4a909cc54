//! Guarantee G13: the error response of a handler or an extractor becomes the reason that the operator sees in the log
//! and in the record. The sender gets the response unchanged.

use std::io;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use idempotent_webhook::{DedupeTx, HandlerError};
use serde::Deserialize;
use tokio::sync::oneshot;
use tower::ServiceExt;

use crate::support::{TestApp, assert_rows, github, logged, record, soon};

const TEAPOT: &str = "the handler answered 418 I'm a teapot";

/// Sends a delivery that fails. Returns the response, whose body is still unread, and the recorded reason, which is
/// also in the log.
async fn fail(app: &TestApp, request: Request) -> (Response, String) {
    let mut response = None;
    let log = logged(async {
        response = Some(soon(app.router.clone().oneshot(request)).await.unwrap());
    })
    .await;
    let reason: String =
        sqlx::query_scalar("select reason from idempotent_webhook.failing_deliveries")
            .fetch_one(&app.database.pool)
            .await
            .unwrap();
    assert_eq!(
        log.contains(&format!("reason={reason:?}")),
        reason != TEAPOT,
        "{reason}: {log}"
    );
    assert_rows!(app.database, claims: 0, effects: 0);
    (response.unwrap(), reason)
}

/// Does the same with a handler that gives this response once.
async fn fail_with(response: impl IntoResponse) -> (Response, String) {
    let response = (StatusCode::IM_A_TEAPOT, response).into_response();
    let response = Arc::new(Mutex::new(Some(response)));
    let handler = async move |_: DedupeTx| response.lock().unwrap().take().unwrap();
    let app = TestApp::keeping(record, handler).await;
    fail(&app, github("a", "{}")).await
}

async fn bytes(response: Response) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn g13_the_text_of_an_extractor_is_the_reason() {
    #[derive(Deserialize)]
    struct Push {
        _after: String,
    }
    async fn push(_: DedupeTx, _: Json<Push>) {}

    let app = TestApp::keeping(record, push).await;
    let (response, reason) = fail(&app, github("a", r#"{"_after": 7}"#)).await;
    assert_eq!(response.status(), 422);
    let body = bytes(response).await;
    let body = str::from_utf8(&body).unwrap();
    assert!(
        body.contains("invalid type: integer `7`, expected a string"),
        "{body}"
    );
    assert_eq!(
        reason,
        format!("the handler answered 422 Unprocessable Entity: {body}")
    );
}

#[tokio::test]
async fn g13_a_text_is_cut_and_its_control_characters_are_escaped() {
    let (response, reason) = fail_with("no\nsuch\u{1b}[31m order\r\n").await;
    assert_eq!(reason, format!(r"{TEAPOT}: no\nsuch\u{{1b}}[31m order"));
    assert_eq!(bytes(response).await, "no\nsuch\u{1b}[31m order\r\n");

    let long = "\u{1f4a5}".repeat(5000);
    let (response, reason) = fail_with(long.clone()).await;
    assert_eq!(reason, format!("{TEAPOT}: {}", "\u{1f4a5}".repeat(200)));
    assert_eq!(response.headers()[CONTENT_LENGTH], "20000");
    assert_eq!(bytes(response).await, long);

    let problem = [(CONTENT_TYPE, "application/problem+json; charset=utf-8")];
    let (response, reason) = fail_with((problem, r#"{"title":"gone"}"#)).await;
    assert_eq!(reason, format!(r#"{TEAPOT}: {{"title":"gone"}}"#));
    assert_eq!(bytes(response).await, r#"{"title":"gone"}"#);
}

#[tokio::test]
async fn g13_a_reason_of_the_handlers_own_comes_first() {
    let own = HandlerError::new("no such order").status(StatusCode::CONFLICT);
    let (response, reason) = fail_with((own, "try later")).await;
    assert_eq!(reason, "no such order");
    assert_eq!(bytes(response).await, "try later");
}

#[tokio::test]
async fn g13_what_is_no_text_is_left_alone() {
    let image = [(CONTENT_TYPE, "image/png")];
    let compressed = [(CONTENT_TYPE, "text/plain"), (CONTENT_ENCODING, "gzip")];
    for response in [
        (image, "a picture").into_response(),
        (compressed, "squeezed").into_response(),
        Body::from("of no type").into_response(),
        "".into_response(),
        " \n".into_response(),
    ] {
        let (_, reason) = fail_with(response).await;
        assert_eq!(reason, TEAPOT);
    }
}

/// If a body reports that it has ended, a server does not send it. The layer must not return a body that it has already
/// read to its end.
#[tokio::test]
async fn g13_a_body_whose_text_was_read_has_not_ended() {
    let (response, reason) = fail_with("no such order").await;
    assert_eq!(reason, format!("{TEAPOT}: no such order"));
    let mut body = response.into_body();
    assert!(!body.is_end_stream());
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "no such order");
    assert!(body.is_end_stream());
}

/// Only the part that is available at once is read, and the sender still gets the whole body.
#[tokio::test]
async fn g13_a_body_that_comes_in_pieces_reaches_the_sender_whole() {
    let text = |body| ([(CONTENT_TYPE, "text/plain")], body);
    let piece = |text: &'static str| Ok::<_, io::Error>(Bytes::from(text));

    let (end, ended) = oneshot::channel();
    let last = stream::once(async move { ended.await.map_err(io::Error::other) });
    let pieces = stream::iter([piece("first, "), piece("second, ")]).chain(last);
    let (response, reason) = fail_with(text(Body::from_stream(pieces))).await;
    assert_eq!(reason, format!("{TEAPOT}: first,"));
    end.send(Bytes::from("last")).unwrap();
    assert_eq!(bytes(response).await, "first, second, last");

    let (begin, begun) = oneshot::channel();
    let late = stream::once(async move { begun.await.map_err(io::Error::other) });
    let (response, reason) = fail_with(text(Body::from_stream(late))).await;
    assert_eq!(reason, TEAPOT);
    begin.send(Bytes::from("late")).unwrap();
    assert_eq!(bytes(response).await, "late");

    let broken = stream::iter([Err::<Bytes, _>(io::Error::other("broken off"))]);
    let (response, reason) = fail_with(text(Body::from_stream(broken))).await;
    assert_eq!(reason, TEAPOT);
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(error.to_string(), "broken off");

    // This stream panics if it is polled again after its end.
    let empty = stream::unfold((), async |()| None::<(io::Result<Bytes>, ())>);
    let (response, reason) = fail_with(text(Body::from_stream(empty))).await;
    assert_eq!(reason, TEAPOT);
    assert_eq!(bytes(response).await, "");
}
