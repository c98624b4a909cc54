//! Signature schemes: where a provider puts its signature and what it signs.

mod hmac_sha256;
mod standard_webhooks;
mod timestamp;
mod tolerance;

use std::fmt;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use crate::secret::Secrets;

pub use hmac_sha256::{HmacSha256, TemplateError};
pub use standard_webhooks::StandardWebhooks;
pub use tolerance::Tolerance;

/// How a provider proves that a request is its own.
///
/// [`HmacSha256`] describes most providers by data, and [`StandardWebhooks`] those that
/// follow that specification. Implement this trait for one
/// that it cannot describe, and hand the value to
/// [`CustomProvider::signature`](crate::CustomProvider::signature).
pub trait SignatureScheme: fmt::Debug + Send + Sync + 'static {
    /// Refuses what can be refused from the head alone, before the body is read.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] if no body could make this request authentic.
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        let _ = head;
        Ok(())
    }

    /// Verifies the signature over the exact raw `body` against any of `secrets`.
    ///
    /// Returns the time at which the provider signed, if the signature covers one;
    /// its age is judged afterwards, by [`Tolerance`].
    ///
    /// MACs must be compared in constant time.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] that says why the request is not authentic.
    fn verify(
        &self,
        head: &Parts,
        body: &[u8],
        secrets: &Secrets,
    ) -> Result<Option<SystemTime>, SignatureError>;

    /// The headers whose values the signature covers. A delivery id in one of them
    /// cannot be forged.
    fn signed_headers(&self) -> &[HeaderName] {
        &[]
    }
}

/// Why a request is not authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureError {
    /// The request lacks this header.
    MissingHeader(HeaderName),
    /// This header is there, but not in the form that the scheme prescribes, or more
    /// than once.
    MalformedHeader(HeaderName),
    /// The signature is well-formed, but not the one of these bytes under any of the
    /// secrets.
    NoMatch,
    /// No signature matches, and one of the secrets is none that the scheme can use: it is
    /// not base64, or a key of another kind.
    UnusableSecret,
    /// The tenant is not known, so there is no secret that could match.
    NoSecret,
    /// The signature is right, but the signed body has no usable time where the scheme
    /// wants one.
    NoTimestamp,
    /// The signature is right, but was made longer ago than the tolerance allows.
    TooOld,
    /// The signature is right, but its time lies further in the future than the
    /// tolerance allows.
    TooNew,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingHeader(name) => write!(f, "header {name} is missing"),
            Self::MalformedHeader(name) => write!(f, "header {name} is malformed"),
            Self::NoMatch => f.write_str("signature matches none of the secrets"),
            Self::UnusableSecret => {
                f.write_str("signature matches none of the secrets, and one of them is unusable")
            }
            Self::NoSecret => f.write_str("no secret is known for the tenant"),
            Self::NoTimestamp => f.write_str("the signed body has no usable timestamp"),
            Self::TooOld => f.write_str("signature is too old"),
            Self::TooNew => f.write_str("signature is from the future"),
        }
    }
}

impl std::error::Error for SignatureError {}

/// The value of a header that must be there exactly once, in visible ASCII.
///
/// Where a header is there twice, which one counts is anybody's guess, and that of a
/// proxy on the way may differ from ours.
fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, SignatureError> {
    let mut values = headers.get_all(name).iter();
    let value = values
        .next()
        .ok_or_else(|| SignatureError::MissingHeader(name.clone()))?;
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(text),
        _ => Err(SignatureError::MalformedHeader(name.clone())),
    }
}

/// The first of several headers that is there, as `only_value` gives it.
fn first_value<'a>(
    headers: &'a HeaderMap,
    names: &'a [HeaderName],
) -> Result<(&'a HeaderName, &'a str), SignatureError> {
    let name = names
        .iter()
        .find(|name| headers.contains_key(*name))
        .or(names.first())
        // A scheme names at least one; one that named none could match nothing.
        .ok_or(SignatureError::NoMatch)?;
    Ok((name, only_value(headers, name)?))
}
