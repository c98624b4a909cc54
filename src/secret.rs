//! Signing secrets: never blank, never printed.

use std::fmt;
use std::sync::Arc;

/// A secret shared with a provider, used as an HMAC key.
///
/// It cannot be blank, because a blank key would let anybody sign. `Debug` prints
/// it redacted, and it has no `Display`.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

/// Prefixes that providers put before the secret proper. A value that is nothing
/// but such a prefix is as blank as an empty one.
const PREFIXES: [&str; 3] = ["whsec_", "whsk_", "whpk_"];

impl Secret {
    /// Takes a secret exactly as the provider shows it, prefix included.
    ///
    /// Not a byte is trimmed: a line end that came along from a file becomes part
    /// of the key, and no signature will match.
    ///
    /// # Errors
    ///
    /// [`BlankSecret`] if there is nothing in it but white space, or nothing after
    /// a prefix such as `whsec_`.
    pub fn new(value: impl Into<Vec<u8>>) -> Result<Self, BlankSecret> {
        let value = value.into();
        let text = String::from_utf8_lossy(&value);
        let core = text.trim();
        let core = PREFIXES
            .iter()
            .find_map(|prefix| core.strip_prefix(prefix))
            .unwrap_or(core);
        if core.trim().is_empty() {
            return Err(BlankSecret(()));
        }
        Ok(Self(value.into()))
    }

    /// The bytes of the secret, for an own [`SignatureScheme`](crate::SignatureScheme).
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// A secret was blank, so that anybody could have signed with it.
#[derive(Clone, Debug)]
pub struct BlankSecret(());

impl fmt::Display for BlankSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the webhook secret is blank")
    }
}

impl std::error::Error for BlankSecret {}

/// One or more secrets that are valid at the same time.
///
/// There is more than one while a secret is being rotated: the provider signs with
/// the old one until it has taken up the new one.
///
/// ```
/// use idempotent_webhook::{Provider, Secret, Secrets};
///
/// # fn main() -> Result<(), idempotent_webhook::BlankSecret> {
/// let secrets = Secrets::new(Secret::new("the new one")?).and(Secret::new("the old one")?);
/// let provider = Provider::github(secrets);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// A set of one.
    pub fn new(secret: Secret) -> Self {
        Self(vec![secret])
    }

    /// The secret of nobody, for a verification that cannot succeed but takes its time. It
    /// is base64 as well, where a scheme wants that.
    pub(crate) fn nobodys() -> Self {
        Self::new(Secret(b"bm9ib2R5".as_slice().into()))
    }

    /// Accepts another secret as well. Signatures are tried in the order of adding.
    #[must_use]
    pub fn and(mut self, secret: Secret) -> Self {
        self.0.push(secret);
        self
    }

    /// The secrets, at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }
}

impl From<Secret> for Secrets {
    fn from(secret: Secret) -> Self {
        Self::new(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_secrets_are_refused() {
        for blank in ["", " ", "\t\r\n", "whsec_", " whsec_ \n", "whsk_", "\u{a0}"] {
            assert!(Secret::new(blank).is_err(), "{blank:?}");
        }
    }

    #[test]
    fn a_secret_is_kept_to_the_byte() -> Result<(), BlankSecret> {
        assert_eq!(Secret::new("whsec_a \n")?.expose(), b"whsec_a \n");
        assert_eq!(Secret::new(vec![0xff, 0x00])?.expose(), [0xff, 0x00]);
        Ok(())
    }

    #[test]
    fn debug_shows_nothing_of_a_secret() -> Result<(), BlankSecret> {
        let secrets = Secrets::new(Secret::new("hunter2")?);
        assert_eq!(format!("{secrets:?}"), "Secrets([Secret(redacted)])");
        Ok(())
    }
}
