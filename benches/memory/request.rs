//! Requests for the measurements. Each request is made before its measurement starts.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http::Request;
use http_body::Frame;

use crate::deliveries::{SECRET, mac};

const FRAME: usize = 16 * 1024;

/// How the body of a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In one frame, which is already in memory.
    Whole,
    /// In frames of 16 KiB. As in a server, each frame is allocated when the reader polls for it.
    Frames,
}

/// How a request proves that it is genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    Right,
    Wrong,
    Missing,
}

pub fn body(size: usize) -> Bytes {
    vec![b'x'; size].into()
}

/// A push event from GitHub.
pub fn push(id: &str, body: &Bytes, arrival: Arrival, signature: Signature) -> Request<Body> {
    counted(id, body, arrival, signature, &Arc::default())
}

/// The same push event, with a counter that increases when the whole body has been read.
pub fn counted(
    id: &str,
    body: &Bytes,
    arrival: Arrival,
    signature: Signature,
    arrived: &Arc<AtomicUsize>,
) -> Request<Body> {
    let signed: &[u8] = match signature {
        Signature::Right => body,
        Signature::Wrong | Signature::Missing => b"something else",
    };
    let mut request = Request::post("/").header("x-github-delivery", id);
    if signature != Signature::Missing {
        let mac = hex::encode(mac(SECRET.as_bytes(), &[signed]));
        request = request.header("x-hub-signature-256", format!("sha256={mac}"));
    }
    let body = match arrival {
        Arrival::Whole => body.clone().into(),
        Arrival::Frames => Body::new(Frames {
            rest: body.clone(),
            arrived: arrived.clone(),
        }),
    };
    request.body(body).unwrap()
}

struct Frames {
    rest: Bytes,
    arrived: Arc<AtomicUsize>,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            self.arrived.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(FRAME);
        let data = Bytes::copy_from_slice(&self.rest.split_to(length));
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}
