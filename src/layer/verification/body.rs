//! Bounded buffering of the raw body. A body over `Provider::body_limit` is answered with 413 (`rejection.rs`). A body
//! over `Keep::body_limit` is not kept (`kept_request` in `layer/settings/mod.rs`).

use std::error::Error;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError};

use crate::tasks_and_errors::error_chain::BoxError;

/// Why a body could not be read.
#[derive(Debug)]
pub(crate) enum BodyError {
    TooLarge {
        /// The length in bytes, if the sender has announced it. It is parsed as a number, so that no text of the sender
        /// gets into logs.
        announced: Option<u64>,
        limit: usize,
    },
    /// The body exceeds the limit of another layer, such as tower-http's. The error of that layer does not contain the
    /// limit.
    LimitOfAnotherLayer,
    TooSlow(Duration),
    Broken(BoxError),
}

impl BodyError {
    /// The text for the sender. It reveals no setting.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } | Self::LimitOfAnotherLayer => "the body is too large",
            Self::TooSlow(_) => "the body took too long",
            Self::Broken(_) => "the body broke off",
        }
    }
}

/// The text for the operator.
impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge {
                announced: Some(length),
                limit,
            } => write!(
                f,
                "the body has {length} bytes, {limit} are allowed (`body_limit`)"
            ),
            Self::TooLarge {
                announced: None,
                limit,
            } => write!(
                f,
                "the body has more than the {limit} bytes that are allowed (`body_limit`)"
            ),
            Self::LimitOfAnotherLayer => {
                f.write_str("the body is too large for another layer's limit, not for `body_limit`")
            }
            Self::TooSlow(limit) => write!(
                f,
                "the body had not arrived after {limit:?}, which is the limit (`body_timeout`)"
            ),
            Self::Broken(_) => f.write_str(self.text()),
        }
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TooLarge { .. } | Self::LimitOfAnotherLayer | Self::TooSlow(_) => None,
            Self::Broken(error) => Some(&**error),
        }
    }
}

/// Reads a body of at most `limit` bytes, which must all arrive within `timeout`.
///
/// A body whose `Content-Length` is over the limit is refused without being read. The buffer grows with the received
/// bytes, not with the announced length.
pub(crate) async fn buffer<B>(
    headers: &HeaderMap,
    body: B,
    limit: usize,
    timeout: Duration,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .unwrap_or_else(|| body.size_hint().lower());
    if usize::try_from(announced).map_or(true, |announced| announced > limit) {
        return Err(BodyError::TooLarge {
            announced: Some(announced),
            limit,
        });
    }
    tokio::time::timeout(timeout, collect(body, limit))
        .await
        .unwrap_or(Err(BodyError::TooSlow(timeout)))
}

async fn collect<B>(body: B, limit: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    // Most bodies have a single frame. It is passed on without a copy.
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(error.into()))?.into_data() else {
            continue;
        };
        if data.len() > limit - first.len() - rest.len() {
            return Err(BodyError::TooLarge {
                announced: None,
                limit,
            });
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&std::mem::take(&mut first));
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    // The buffer has grown by doubling, so it may have much unused space, and it stays in memory while the delivery
    // waits.
    rest.shrink_to_fit();
    Ok(rest.into())
}

/// Distinguishes the limit of another layer from a broken connection.
fn broken(error: BoxError) -> BodyError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return BodyError::LimitOfAnotherLayer;
        }
        cause = error.source();
    }
    BodyError::Broken(error)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;
    use http_body_util::{Full, Limited};

    use super::*;

    /// A body with these frames.
    struct Frames(VecDeque<Bytes>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_body_of_one_frame_is_not_copied() -> Result<(), BodyError> {
        let data = Bytes::from(vec![7; 1000]);
        let read = buffer(&HeaderMap::new(), Full::new(data.clone()), 1000, LONG).await?;
        assert_eq!(read.as_ptr(), data.as_ptr());
        Ok(())
    }

    #[tokio::test]
    async fn frames_are_put_together_in_order() -> Result<(), BodyError> {
        let frames = ["", "a", "", "bc", "d"].map(|text| Bytes::from_static(text.as_bytes()));
        let read = buffer(&HeaderMap::new(), Frames(frames.into()), 4, LONG).await?;
        assert_eq!(read, "abcd");
        Ok(())
    }

    #[tokio::test]
    async fn g9_a_byte_over_the_limit_is_too_much() {
        for frames in [vec!["abcd"], vec!["ab", "cd"]] {
            let frames = frames.into_iter().map(Bytes::from).collect();
            let read = buffer(&HeaderMap::new(), Frames(frames), 3, LONG).await;
            assert!(matches!(
                read,
                Err(BodyError::TooLarge {
                    announced: None,
                    limit: 3
                })
            ));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_announced_too_large_is_refused_with_its_length() {
        let headers = HeaderMap::from_iter([(CONTENT_LENGTH, 4.into())]);
        let read = buffer(&headers, Full::new(Bytes::new()), 3, LONG).await;
        assert!(matches!(
            read,
            Err(BodyError::TooLarge {
                announced: Some(4),
                limit: 3
            })
        ));
    }

    proptest::proptest! {
        #[test]
        fn any_frames_are_their_concatenation_or_too_much(
            frames in proptest::collection::vec(
                proptest::collection::vec(proptest::num::u8::ANY, 0..20), 0..10,
            ),
            limit in 0..200_usize,
        ) {
            let whole = frames.concat();
            let frames = Frames(frames.into_iter().map(Bytes::from).collect());
            let read = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()?
                .block_on(buffer(&HeaderMap::new(), frames, limit, LONG));
            match read {
                Ok(read) => {
                    proptest::prop_assert!(whole.len() <= limit);
                    proptest::prop_assert_eq!(read, whole);
                }
                Err(error) => {
                    let is_too_large = matches!(error, BodyError::TooLarge { .. });
                    proptest::prop_assert!(is_too_large);
                    proptest::prop_assert!(whole.len() > limit);
                }
            }
        }
    }

    #[tokio::test]
    async fn a_limit_of_another_layer_is_known_for_what_it_is() {
        let limited = Limited::new(Full::new(Bytes::from_static(b"abcd")), 3);
        let read = buffer(&HeaderMap::new(), limited, 1000, LONG).await;
        assert!(matches!(read, Err(BodyError::LimitOfAnotherLayer)));
    }
}
