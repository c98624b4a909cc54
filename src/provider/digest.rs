//! SHA-256 of one text, or of several distinct parts.

use sha2::{Digest, Sha256};

/// A SHA-256.
pub(crate) type Sha256Digest = [u8; 32];

/// The SHA-256 of `parts`, each preceded by its length, so that no two lists of parts have the same
/// digest.
pub(crate) fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Sha256Digest {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// The SHA-256 of `data` as 64 lower-case hexadecimal digits.
pub(crate) fn sha256_hex(data: &[u8]) -> String {
    hex::encode(Sha256::digest(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, the one-block example.
    #[test]
    fn sha256_agrees_with_fips_180() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
