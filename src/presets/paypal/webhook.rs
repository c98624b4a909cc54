//! The webhook whose deliveries the preset accepts.

use std::str::FromStr;

use super::scheme::RSA;
use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

/// The webhook whose deliveries [`paypal`](super::paypal) accepts.
///
/// Its text form is the webhook id, or `<webhook id>:<public key in PEM>`.
#[derive(Clone, Debug)]
pub struct PayPalWebhook {
    pub(super) id: String,
    /// The public key, which verifies. In tests, the private key, which can also sign.
    pub(super) public_key: Option<Secret>,
}

impl PayPalWebhook {
    /// The webhook with this id, such as `6HY79521VR978045E`. Its keys are fetched, which needs the feature
    /// `x509`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the id is blank, or contains a colon or `|`.
    pub fn new(webhook_id: impl Into<String>) -> Result<Self, SecretError> {
        let id = webhook_id.into();
        match is_part(&id, ':') && !id.contains('|') {
            true => Ok(Self {
                id,
                public_key: None,
            }),
            false => Err(SecretError::new("it is not a PayPal webhook id")),
        }
    }

    /// Sets PayPal's public key in PEM, so that nothing is fetched.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is not an RSA key in PEM.
    pub fn public_key(mut self, pem: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let key = Secret::new(pem)?;
        if RSA.key_of(key.expose()).is_none() {
            return Err(SecretError::new(
                "PayPal's public key is not an RSA key in PEM",
            ));
        }
        self.public_key = Some(key);
        Ok(self)
    }
}

impl FromStr for PayPalWebhook {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        match text.split_once(':') {
            Some((id, key)) => Self::new(id)?.public_key(key),
            None => Self::new(text),
        }
    }
}

impl From<PayPalWebhook> for Secret {
    fn from(webhook: PayPalWebhook) -> Self {
        match webhook.public_key {
            Some(key) => Self::of_pair(&webhook.id, &key),
            None => Self::of_text_form(webhook.id),
        }
    }
}
