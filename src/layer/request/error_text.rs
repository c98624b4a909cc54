//! The text of an error response, in which an extractor says why it has refused a request.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response};
use http_body::Body;
use http_body_util::Full;

/// How many characters of the text the operator gets.
const MAX_CHARS: usize = 200;

/// The longest character of UTF-8, in bytes.
const MAX_CHAR_LEN: usize = 4;

/// The beginning of the body, if the body is text and ready at once. The sender still gets the whole body.
///
/// Only axum's body and `Full<Bytes>` are read, because the bytes can be put back into these two types, and not into
/// others.
pub(super) fn error_text<B: 'static>(response: &mut Response<B>) -> Option<String> {
    if !is_text(response.headers()) {
        return None;
    }
    let data = first_data(response.body_mut())?;
    let beginning = data.get(..MAX_CHARS * MAX_CHAR_LEN).unwrap_or(&data);
    let text = String::from_utf8_lossy(beginning);
    let text: String = text.chars().take(MAX_CHARS).collect();
    let mut escaped = String::new();
    for char in text.trim().chars() {
        if char.is_control() {
            escaped.extend(char.escape_default());
        } else {
            escaped.push(char);
        }
    }
    (!escaped.is_empty()).then_some(escaped)
}

fn is_text(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = content_type.and_then(|it| it.split(';').next());
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = essence.starts_with("text/")
        || [
            "application/json",
            "application/problem+json",
            "application/x-www-form-urlencoded",
        ]
        .contains(&&*essence);
    is_text && !headers.contains_key(CONTENT_ENCODING)
}

/// The data of the first frame, if it is ready at once.
fn first_data(body: &mut dyn Any) -> Option<Bytes> {
    if let Some(body) = body.downcast_ref::<Full<Bytes>>() {
        return match poll_frame(&mut body.clone()) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            Poll::Ready(_) | Poll::Pending => None,
        };
    }
    #[cfg(feature = "axum")]
    if let Some(body) = body.downcast_mut() {
        return axum_body::peek(body);
    }
    None
}

type PolledFrame<B> = Poll<Option<Result<http_body::Frame<Bytes>, <B as Body>::Error>>>;

/// Polls once, with a waker that does nothing. The server later polls with its own waker.
fn poll_frame<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> PolledFrame<B> {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

#[cfg(feature = "axum")]
mod axum_body {
    use axum_core::Error;
    use axum_core::body::Body as AxumBody;
    use http_body::{Body, Frame, SizeHint};

    use super::{Bytes, Context, Pin, Poll, poll_frame};

    /// The data of the first frame, if it is ready at once. The frame stays in the body.
    pub(super) fn peek(body: &mut AxumBody) -> Option<Bytes> {
        let first = match poll_frame(body) {
            Poll::Pending => return None,
            Poll::Ready(None) => {
                // The body has ended, and must not be polled again.
                *body = AxumBody::empty();
                return None;
            }
            Poll::Ready(Some(first)) => first,
        };
        let data = first
            .as_ref()
            .ok()
            .and_then(|frame| frame.data_ref())
            .cloned();
        let rest = std::mem::take(body);
        *body = AxumBody::new(Peeked {
            first: Some(first),
            rest,
        });
        data
    }

    /// A body whose first frame was already read.
    struct Peeked {
        first: Option<Result<Frame<Bytes>, Error>>,
        rest: AxumBody,
    }

    impl Body for Peeked {
        type Data = Bytes;
        type Error = Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
            match self.first.take() {
                Some(first) => Poll::Ready(Some(first)),
                None => Pin::new(&mut self.rest).poll_frame(cx),
            }
        }

        fn is_end_stream(&self) -> bool {
            self.first.is_none() && self.rest.is_end_stream()
        }

        /// Includes the first frame, because the server computes the content length from this hint.
        fn size_hint(&self) -> SizeHint {
            let rest = self.rest.size_hint();
            let data = self
                .first
                .as_ref()
                .and_then(|first| first.as_ref().ok()?.data_ref());
            let first = data.map_or(0, |data| data.len() as u64);
            let mut hint = SizeHint::new();
            hint.set_lower(rest.lower() + first);
            if let Some(upper) = rest.upper() {
                hint.set_upper(upper + first);
            }
            hint
        }
    }
}
