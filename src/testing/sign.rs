//! Signs a given request.

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;

use crate::provider::keys::KeySource;
use crate::provider::signature::{SignError, UnsignedRequest};
use crate::provider::{Provider, Secret};

/// Signs a request as the provider would at `time`, and changes nothing else. The request must already contain the
/// delivery id and the event type; [`TestDelivery`](super::TestDelivery) can fill these in. If the preset takes a
/// special type instead of a secret, pass the text form of that type as the secret.
///
/// ```
/// use std::time::SystemTime;
/// use bytes::Bytes;
/// use http::Request;
/// use idempotent_webhook::{Secret, presets, testing};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = Secret::new("a secret")?;
/// let github = presets::github(secret.clone());
/// let request = Request::post("/").header("x-github-delivery", "1").body(Bytes::from("{}"))?;
/// let signed = testing::sign(&github, &secret, request, SystemTime::now())?;
/// assert!(signed.headers().contains_key("x-hub-signature-256"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`SignError`] if the scheme cannot sign, or cannot sign with this secret.
pub fn sign(
    provider: &Provider,
    secret: &Secret,
    request: Request<Bytes>,
    time: SystemTime,
) -> Result<Request<Bytes>, SignError> {
    let (head, body) = request.into_parts();
    let keys = provider.key_source().and_then(KeySource::get_given);
    let mut request = UnsignedRequest::new(head, body, time, provider.get_public_url().cloned())
        .keys(keys.cloned());
    provider.scheme().sign(&mut request, secret)?;
    let (head, body) = request.into_parts();
    Ok(Request::from_parts(head, body))
}
