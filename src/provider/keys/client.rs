//! The client that fetches keys.

use std::pin::Pin;
use std::sync::Arc;

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};

use crate::tasks_and_errors::error_chain::BoxError;

/// The longest accepted answer, in bytes.
pub(super) const MAX_ANSWER: usize = 256 * 1024;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;
pub(super) type Client = Arc<dyn Fn(Request<Bytes>) -> Answer + Send + Sync>;

/// An HTTP client that fetches keys.
///
/// With the feature `reqwest`, `reqwest::Client` is such a client. So is any function from a request to its
/// response, or to an error in a `Box<dyn Error + Send + Sync>`, into which `?` converts other errors:
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
///     // Use the client of your application.
///     let response: Response<Bytes> = send(request).await?;
///     Ok(response)
/// });
/// ```
pub trait KeyClient: Send + Sync + 'static {
    /// Sends a request and reads the whole answer.
    ///
    /// The client must not follow redirects, and should stop reading after 256 KiB. It needs no time limit, because
    /// the caller has one.
    ///
    /// # Errors
    ///
    /// Any error. It is logged. An answer with a status other than 200 need not be an error. A panic counts as an
    /// error.
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

/// Use a client that does not follow redirects, like the client of [`KeySource::https`](super::KeySource::https).
/// Any other client sends a request to the target of a redirect, and the answer is then refused.
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
