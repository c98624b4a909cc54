//! A LiveKit API key with its secret.

use std::str::FromStr;

use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

const MALFORMED: SecretError =
    SecretError::new("LiveKit needs `<API key>:<API secret>`, without white space around them");

/// A LiveKit API key, for [`livekit`](super::livekit).
///
/// Its text form is `<API key>:<API secret>`.
#[derive(Clone, Debug)]
pub struct LiveKitKey {
    pub(super) api_key: String,
    pub(super) api_secret: Secret,
}

impl LiveKitKey {
    /// The pair of this API key and its secret.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the API key is blank or contains a colon, if the API secret is not UTF-8, or if the key or
    /// the secret starts or ends with white space.
    pub fn new(api_key: impl Into<String>, api_secret: Secret) -> Result<Self, SecretError> {
        let api_key = api_key.into();
        match is_part(&api_key, ':') && api_secret.is_last_part() {
            true => Ok(Self {
                api_key,
                api_secret,
            }),
            false => Err(MALFORMED),
        }
    }
}

impl FromStr for LiveKitKey {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (api_key, api_secret) = Secret::split_pair(text).ok_or(MALFORMED)?;
        Self::new(api_key, api_secret)
    }
}

impl From<LiveKitKey> for Secret {
    fn from(key: LiveKitKey) -> Self {
        Self::of_pair(&key.api_key, &key.api_secret)
    }
}
