//! The endpoint that eBay notifies.

use std::str::FromStr;

use crate::provider::{Secret, SecretError};

/// The start of the text form for the sandbox. No verification token starts with this.
const SANDBOX: &str = "sandbox:";

/// The endpoint that eBay notifies, for [`ebay`](super::ebay), in production or in the sandbox.
///
/// Its text form is the verification token, and `sandbox:<verification token>` for the sandbox.
#[derive(Clone, Debug)]
pub struct EbayEndpoint {
    pub(super) verification_token: Secret,
    pub(super) is_sandbox: bool,
}

impl EbayEndpoint {
    /// An endpoint in production, with the verification token that you gave to eBay.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the token contains anything but ASCII letters, digits, `_` and `-`. eBay allows nothing
    /// else.
    pub fn new(verification_token: Secret) -> Result<Self, SecretError> {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        match verification_token.expose().iter().all(is_allowed) {
            true => Ok(Self {
                verification_token,
                is_sandbox: false,
            }),
            false => Err(SecretError::new(
                "it is not an eBay verification token, which consists of letters, digits, `_` and `-`",
            )),
        }
    }

    /// The endpoint in the sandbox instead of in production.
    #[must_use]
    pub fn sandbox(mut self) -> Self {
        self.is_sandbox = true;
        self
    }
}

impl FromStr for EbayEndpoint {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        match text.strip_prefix(SANDBOX) {
            Some(token) => Ok(Self::new(Secret::exact(token)?)?.sandbox()),
            None => Self::new(Secret::exact(text)?),
        }
    }
}

impl From<EbayEndpoint> for Secret {
    fn from(endpoint: EbayEndpoint) -> Self {
        match endpoint.is_sandbox {
            true => Self::of_pair("sandbox", &endpoint.verification_token),
            false => endpoint.verification_token,
        }
    }
}
