//! The user whose webhooks the preset accepts.

use std::str::FromStr;

use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

/// The fal user whose webhooks [`fal`](super::fal) accepts: your own user.
///
/// Its text form is the user id.
#[derive(Clone, Debug)]
pub struct FalUser {
    pub(super) id: String,
}

impl FalUser {
    /// The user with the id that fal sends in `X-Fal-Webhook-User-Id`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is blank or contains a space.
    pub fn new(id: impl Into<String>) -> Result<Self, SecretError> {
        let id = id.into();
        match is_part(&id, ' ') {
            true => Ok(Self { id }),
            false => Err(SecretError::new("it is not a fal user id")),
        }
    }
}

impl FromStr for FalUser {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        Self::new(text)
    }
}

impl From<FalUser> for Secret {
    fn from(user: FalUser) -> Self {
        Self::of_text_form(user.id)
    }
}
