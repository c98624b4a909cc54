//! The user whose webhooks are taken.

use std::str::FromStr;

use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

/// The user of fal whose webhooks [`fal`](super::fal) takes: yourself.
///
/// Its text form is the user id.
#[derive(Clone, Debug)]
pub struct FalUser {
    pub(super) id: String,
}

impl FalUser {
    /// A user by the id that fal sends in `X-Fal-Webhook-User-Id`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is blank or has a space.
    pub fn new(id: impl Into<String>) -> Result<Self, SecretError> {
        let id = id.into();
        match is_part(&id, ' ') {
            true => Ok(Self { id }),
            false => Err(SecretError::new("it is not the id of a user of fal")),
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
