//! The audience and the account that a Google token must name.

use std::str::FromStr;

use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

/// The push subscription whose requests [`google_pubsub`](super::google_pubsub) accepts: its service account and
/// its audience.
///
/// Its text form is `<service account> <audience>`, separated by one space.
#[derive(Clone, Debug)]
pub struct PubSub {
    pub(super) service_account: String,
    pub(super) audience: String,
}

impl PubSub {
    /// Takes the service account's email, such as `push@my-project.iam.gserviceaccount.com`, and the audience,
    /// which is the push endpoint's URL unless the subscription sets another audience.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the account is not an email address, or if the account or the audience is blank or contains a
    /// space.
    pub fn new(
        service_account: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, SecretError> {
        let (service_account, audience) = (service_account.into(), audience.into());
        let is_usable = service_account.contains('@')
            && is_part(&service_account, ' ')
            && is_part(&audience, ' ');
        match is_usable {
            true => Ok(Self {
                service_account,
                audience,
            }),
            false => Err(SecretError::new(
                "it is not the email of a service account and an audience: \
                 `<service account> <audience>` with one space between",
            )),
        }
    }
}

impl FromStr for PubSub {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (service_account, audience) = text.split_once(' ').unwrap_or((text, ""));
        Self::new(service_account, audience)
    }
}

impl From<PubSub> for Secret {
    fn from(push: PubSub) -> Self {
        Self::of_text_form(format!("{} {}", push.service_account, push.audience))
    }
}
