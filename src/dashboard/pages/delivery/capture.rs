//! A delivery as a capture for tests, which browsers save instead of showing it.

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use tokio::task::spawn_blocking;

use super::super::super::error::PageError;
use super::super::super::params::Params;
use super::super::super::{Access, Shared};
use super::stored::{self, Delivery, body};
use super::{file, look};
use crate::testing::Pseudonyms;
use crate::testing::capture::MAX_BODY;

const NOT_KEPT: PageError = PageError::not_found("Its request is not kept.");

const NOT_READABLE: PageError = PageError::not_found(
    "It has no capture: its body cannot be read, so pseudonyms cannot replace its values.",
);

const TOO_LARGE: PageError =
    PageError::not_found("It has no capture: its body is larger than 2 MiB.");

/// Makes the capture. Its pseudonyms have their own random key.
pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Response, PageError> {
    let (key, mut reading) = look(shared, access, params, NOT_KEPT).await?;
    let delivery = Delivery::read(&mut reading, &key, access).await?;
    let payload = body(&mut reading, &key, None).await?;
    reading.end();
    let kept = delivery.request.zip(payload);
    let (request, payload) = kept.ok_or(NOT_KEPT)?;
    let request = received(request, payload).ok_or(NOT_READABLE)?;
    if request.body().len() > MAX_BODY {
        return Err(TOO_LARGE);
    }
    // This runs in a blocking task, because each word of the body takes some microseconds.
    let event_type = delivery.event_type;
    let capture = spawn_blocking(move || Pseudonyms::new().of_kept(&request, event_type)).await;
    let capture = capture.ok().and_then(Result::ok).ok_or(NOT_READABLE)?;
    Ok(file(
        capture.to_bytes(),
        "attachment; filename=\"capture.http\"",
    ))
}

fn received(request: stored::Request, payload: Vec<u8>) -> Option<Request<Bytes>> {
    let mut received = Request::new(Bytes::from(payload));
    *received.method_mut() = request.method.parse().ok()?;
    *received.uri_mut() = request.uri?.parse().ok()?;
    for (name, value) in request.headers? {
        let name: HeaderName = name.parse().ok()?;
        let value = HeaderValue::try_from(value).ok()?;
        received.headers_mut().append(name, value);
    }
    Some(received)
}
