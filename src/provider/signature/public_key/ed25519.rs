//! Ed25519 with keys in hex or base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::provider::signature::mac::{ed25519_signature, is_ed25519_key, is_ed25519_signature};

/// A private key, if there is one, and the public key.
type KeyPair = (Option<[u8; 32]>, [u8; 32]);

fn key_pair(secret: &[u8]) -> Option<KeyPair> {
    // The lengths differ, so that no text is both.
    let decoded = match secret.len() {
        64 | 128 => hex::decode(secret).ok()?,
        _ => BASE64.decode(secret).ok()?,
    };
    let (private, public) = match decoded.len() {
        32 => (None, decoded.as_slice()),
        64 => {
            let (private, public) = decoded.split_at(32);
            (Some(private.try_into().ok()?), public)
        }
        _ => return None,
    };
    let public = public.try_into().ok()?;
    is_ed25519_key(&public).then_some((private, public))
}

pub(super) fn verify(secret: &[u8], message: &[u8], signature: &[u8]) -> Option<bool> {
    let (_, public) = key_pair(secret)?;
    let signature = signature.try_into().ok();
    Some(signature.is_some_and(|signature| is_ed25519_signature(&public, message, signature)))
}

pub(super) fn sign(secret: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let (private, _) = key_pair(secret)?;
    Some(ed25519_signature(&private?, message).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2.
    const PRIVATE: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    #[test]
    fn it_agrees_with_rfc_8032() -> Result<(), hex::FromHexError> {
        let pair = format!("{PRIVATE}{PUBLIC}");
        let signature = hex::decode(SIGNATURE)?;
        assert_eq!(sign(pair.as_bytes(), &[0x72]), Some(signature.clone()));
        let base64 = BASE64.encode(hex::decode(PUBLIC)?);
        for key in [PUBLIC, &pair, &base64] {
            let key = key.as_bytes();
            assert_eq!(verify(key, &[0x72], &signature), Some(true));
            assert_eq!(verify(key, &[0x73], &signature), Some(false));
            assert_eq!(
                verify(key, &[0x72], signature.get(1..).unwrap_or(&[])),
                Some(false)
            );
        }
        assert_eq!(sign(PUBLIC.as_bytes(), b""), None);
        Ok(())
    }

    #[test]
    fn other_secrets_are_not_keys() {
        for wrong in [
            "",
            "secret",
            "00",
            &"zz".repeat(32),
            &"02".repeat(32),
            &PUBLIC[2..],
        ] {
            assert_eq!(verify(wrong.as_bytes(), b"", b""), None, "{wrong}");
        }
    }
}
