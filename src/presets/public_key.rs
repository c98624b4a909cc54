//! A public key of a provider.

use std::str::FromStr;

use crate::provider::{Secret, SecretError};

/// The public key that verifies a provider's signatures, as the provider shows it, for presets such
/// as [`discord`](super::discord).
///
/// Its text form is the key.
#[derive(Clone, Debug)]
pub struct PublicKey {
    /// In tests, this is the private key.
    key: Secret,
}

impl PublicKey {
    /// A key in the form that the preset's documentation names: PEM, base64 or hexadecimal digits.
    /// [`Provider::check_secrets`](crate::Provider::check_secrets) checks that the preset can use it.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is blank, or if it is not PEM and starts or ends with white space.
    pub fn new(key: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        Secret::new(key).map(|key| Self { key })
    }
}

impl FromStr for PublicKey {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        Self::new(text)
    }
}

impl From<PublicKey> for Secret {
    fn from(key: PublicKey) -> Self {
        key.key
    }
}
