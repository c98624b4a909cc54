//! Signature schemes: where a provider puts its signature, and what it signs.
//!
//! - [`Hmac`] has settings for the header that carries an HMAC, and for what the HMAC covers ([`SignedContent`]).
//! - [`StandardWebhooks`] is the scheme of the Standard Webhooks specification.
//! - [`Jwt`] is for JSON Web Tokens, with a secret or with keys that are fetched.
//! - [`Token`] and [`BasicAuth`] are for providers that send a secret and sign nothing.
//! - [`ByHeader`] chooses between two schemes.
//! - [`SignatureScheme`] is the trait of all of them. Implement it for any other scheme.
//!
//! Other schemes, such as sorted form parameters or tokens in the body, are private to their presets.

mod basic_auth;
mod by_header;
pub(crate) mod same_secret;
mod encoding;
pub(crate) mod form;
mod hmac;
pub(crate) mod jwt;
mod key;
pub(crate) mod digests;
mod mac;
mod public_key;
mod scheme;
mod sign;
mod signed_content;
mod standard_webhooks;
pub(crate) mod token;
pub(crate) mod timestamp;
mod tolerance;
#[cfg(feature = "x509")]
pub(crate) mod x509;

use http::HeaderMap;
use http::header::HeaderName;

#[cfg(any(feature = "p256", feature = "rsa"))]
use crate::provider::{Secret, Secrets};

pub use basic_auth::{BasicAuth, BasicCredentials};
pub use by_header::ByHeader;
pub use encoding::Encoding;
pub use hmac::Hmac;
pub use jwt::Jwt;
pub(crate) use key::Derivation;
pub use key::Key;
pub use mac::Hash;
#[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
pub use public_key::PublicKeySignature;
pub use public_key::{PublicKey, SignatureAlgorithm};
pub(crate) use scheme::TriedFetch;
pub use scheme::{KeyNotFetched, SignatureError, SignatureScheme, Signed, SignedRequest};
pub use sign::{SignError, UnsignedRequest};
pub use signed_content::SignedContent;
pub use standard_webhooks::StandardWebhooks;
pub use token::Token;
pub use tolerance::Tolerance;
#[cfg(feature = "x509")]
pub use x509::{CertificateError, X509Chain};

/// The value of a header that must occur exactly once, in visible ASCII.
///
/// If a header is repeated, it is unclear which value counts, and a proxy may choose the other one.
pub(crate) fn only_value<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<&'a str, SignatureError> {
    let mut values = headers.get_all(name).iter();
    let value = values
        .next()
        .ok_or_else(|| SignatureError::MissingHeader(name.clone()))?;
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(text),
        _ => Err(SignatureError::MalformedHeader(name.clone())),
    }
}

/// Whether a text is a UUID. A UUID is safe inside an address or signed content: it cannot change where the address
/// leads, or where a part of the content ends.
pub(crate) fn is_uuid(text: &str) -> bool {
    let is_at = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_at)
}

/// The value of the first of several headers that is present.
fn first_value<'a>(
    headers: &'a HeaderMap,
    names: &'a [HeaderName],
) -> Result<(&'a HeaderName, &'a str), SignatureError> {
    let name = names
        .iter()
        .find(|name| headers.contains_key(*name))
        .or(names.first())
        // Every scheme names at least one header.
        .ok_or(SignatureError::NoMatch)?;
    Ok((name, only_value(headers, name)?))
}

/// Checks that `is_signed` is true for one of the secrets. If it is true for none, one of the errors is returned.
/// An error about a key that can still be fetched takes precedence.
#[cfg(any(feature = "p256", feature = "rsa"))]
pub(crate) fn signed_under_one_of(
    request: &SignedRequest<'_>,
    secrets: &Secrets,
    mut is_signed: impl FnMut(&Secret) -> Result<bool, SignatureError>,
) -> Result<(), SignatureError> {
    let mut found = SignatureError::NoMatch;
    for secret in secrets.iter() {
        match is_signed(secret) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(_) if request.may_fetch(&found) => {}
            // The secret whose key could not be fetched may be the right one, so its error stays.
            Err(error)
                if matches!(found, SignatureError::KeyNotFetched(_))
                    && !request.may_fetch(&error) => {}
            Err(error) => found = error,
        }
    }
    Err(found)
}
