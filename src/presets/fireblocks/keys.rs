//! Where Fireblocks' keys come from.

use std::str::FromStr;

use super::scheme::RS512;
use crate::provider::keys::KeyRequest;
use crate::provider::{Secret, SecretError};

/// Fireblocks' keys, for [`fireblocks`](super::fireblocks).
///
/// Its text form is the environment (`us`, `eu`, `eu2` or `sandbox`), or the [`given`](Self::given)
/// key in PEM.
#[derive(Clone, Debug)]
pub struct FireblocksKeys(pub(super) Keys);

#[derive(Clone, Debug)]
pub(super) enum Keys {
    Us,
    Eu,
    Eu2,
    Sandbox,
    /// The public key, which verifies. In tests, the private key, which can also sign.
    Given(Secret),
}

impl FireblocksKeys {
    /// The keys of the United States, at `keys.fireblocks.io`.
    pub fn us() -> Self {
        Self(Keys::Us)
    }

    /// The keys of the European Union, at `eu-keys.fireblocks.io`.
    pub fn eu() -> Self {
        Self(Keys::Eu)
    }

    /// The keys of the second environment in the European Union, at `eu2-keys.fireblocks.io`.
    pub fn eu2() -> Self {
        Self(Keys::Eu2)
    }

    /// The keys of the sandbox, at `sandbox-keys.fireblocks.io`.
    pub fn sandbox() -> Self {
        Self(Keys::Sandbox)
    }

    /// One public key in PEM. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is not an RSA key in PEM.
    pub fn given(pem: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let key = Secret::new(pem)?;
        match RS512.key_of(key.expose()) {
            Some(_) => Ok(Self(Keys::Given(key))),
            None => Err(SecretError::new(
                "it is neither an RSA key in PEM nor one of `us`, `eu`, `eu2` and `sandbox`",
            )),
        }
    }

    /// The address of the keys, unless a key is given.
    pub(super) fn address(&self) -> Option<KeyRequest> {
        Some(KeyRequest::get(match self.0 {
            Keys::Us => "https://keys.fireblocks.io/.well-known/jwks.json",
            Keys::Eu => "https://eu-keys.fireblocks.io/.well-known/jwks.json",
            Keys::Eu2 => "https://eu2-keys.fireblocks.io/.well-known/jwks.json",
            Keys::Sandbox => "https://sandbox-keys.fireblocks.io/.well-known/jwks.json",
            Keys::Given(_) => return None,
        }))
    }
}

impl FromStr for FireblocksKeys {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        match text {
            "us" => Ok(Self::us()),
            "eu" => Ok(Self::eu()),
            "eu2" => Ok(Self::eu2()),
            "sandbox" => Ok(Self::sandbox()),
            pem => Self::given(pem),
        }
    }
}

impl From<FireblocksKeys> for Secret {
    fn from(keys: FireblocksKeys) -> Self {
        Self::of_text_form(match keys.0 {
            Keys::Us => "us",
            Keys::Eu => "eu",
            Keys::Eu2 => "eu2",
            Keys::Sandbox => "sandbox",
            Keys::Given(key) => return key,
        })
    }
}
