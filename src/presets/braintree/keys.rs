//! The key pair of an API user.

use std::str::FromStr;

use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

const MALFORMED: SecretError = SecretError::new(
    "Braintree needs `<public key>:<private key>`, without white space around them",
);

/// The key pair of a Braintree API user, for [`braintree`](super::braintree).
///
/// Its text form is `<public key>:<private key>`.
#[derive(Clone, Debug)]
pub struct BraintreeKeys {
    pub(super) public_key: String,
    pub(super) private_key: Secret,
}

impl BraintreeKeys {
    /// The pair of this public key and this private key.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the public key is blank or contains a colon, if the private key is not UTF-8, or if either
    /// key starts or ends with white space.
    pub fn new(public_key: impl Into<String>, private_key: Secret) -> Result<Self, SecretError> {
        let public_key = public_key.into();
        match is_part(&public_key, ':') && private_key.is_last_part() {
            true => Ok(Self {
                public_key,
                private_key,
            }),
            false => Err(MALFORMED),
        }
    }
}

impl FromStr for BraintreeKeys {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (public_key, private_key) = Secret::split_pair(text).ok_or(MALFORMED)?;
        Self::new(public_key, private_key)
    }
}

impl From<BraintreeKeys> for Secret {
    fn from(keys: BraintreeKeys) -> Self {
        Self::of_pair(&keys.public_key, &keys.private_key)
    }
}
