//! The client that sends the request for keys.

use std::pin::Pin;
use std::sync::Arc;

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};

use crate::tasks_and_errors::error_chain::BoxError;

/// The longest answer, in bytes.
pub(super) const MAX_ANSWER: usize = 256 * 1024;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;
pub(super) type Client = Arc<dyn Fn(Request<Bytes>) -> Answer + Send + Sync>;

/// An HTTP client that fetches keys. `reqwest::Client` is one with the feature `reqwest`. So is any
/// function from a request to its response, or to an error in a `Box<dyn Error + Send + Sync>`, into which `?`
/// converts others:
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use idempotent_webhook::provider::keys::KeySource;
///
/// # async fn send(_: Request<Bytes>) -> std::io::Result<Response<Bytes>> {
/// #     Ok(Response::new(Bytes::new()))
/// # }
/// let keys = KeySource::fetched(|request: Request<Bytes>| async {
///     // By the client of your application.
///     let response: Response<Bytes> = send(request).await?;
///     Ok(response)
/// });
/// ```
pub trait KeyClient: Send + Sync + 'static {
    /// Sends a request, and reads the whole answer. It must not follow redirects, and should stop
    /// reading after 256 KiB. It need not have a time limit: the caller has one.
    ///
    /// # Errors
    ///
    /// Any error, which is logged. An answer with another status than 200 need not be one. A panic is taken for
    /// an error.
    fn fetch(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, Box<dyn Error + Send + Sync>>> + Send;
}

impl<F, R> KeyClient for F
where
    F: Fn(Request<Bytes>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response<Bytes>, Box<dyn Error + Send + Sync>>> + Send,
{
    fn fetch(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, Box<dyn Error + Send + Sync>>> + Send {
        self(request)
    }
}

/// Give it a client that follows no redirects, like the one of [`KeySource::https`](super::KeySource::https). Any other
/// client asks the target of a redirect, and its answer is refused.
#[cfg(feature = "reqwest")]
impl KeyClient for reqwest::Client {
    async fn fetch(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
        let request = reqwest::Request::try_from(request)?;
        let asked = request.url().clone();
        // The address is logged elsewhere, without the parts that a sender has chosen.
        let mut response = self
            .execute(request)
            .await
            .map_err(reqwest::Error::without_url)?;
        if *response.url() != asked {
            return Err("the answer came by a redirect".into());
        }
        let mut body = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .map_err(reqwest::Error::without_url)?
        {
            body.extend_from_slice(&part);
            if body.len() > MAX_ANSWER {
                break;
            }
        }
        let mut answer = Response::new(body.into());
        *answer.status_mut() = response.status();
        Ok(answer)
    }
}
