//! MACs and digests for schemes that have their own code.

use sha2::{Digest, Sha256};

use super::mac::ExpectedMac;
pub(crate) use super::mac::Hash;
use crate::provider::digest::sha256_of;

/// The HMAC of the concatenated `parts`.
pub(crate) fn hmac<'a>(
    hash: Hash,
    key: &[u8],
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    ExpectedMac::with(hash, key, parts).into_bytes()
}

/// The SHA-1 of `data`, from which one provider derives its key.
#[cfg(feature = "sha1")]
pub(crate) fn sha1(data: &[u8]) -> Vec<u8> {
    sha1::Sha1::digest(data).to_vec()
}

/// The SHA-256 of the concatenated `parts`.
pub(crate) fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().to_vec()
}

/// A digest that identifies a delivery if the provider sends no id. It covers the path with the query, and the
/// body.
pub(crate) fn request_digest(path_and_query: &str, body: &[u8]) -> String {
    hex::encode(sha256_of([path_and_query.as_bytes(), body]))
}
