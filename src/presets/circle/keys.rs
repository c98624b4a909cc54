//! Where Circle's keys come from.

use std::str::FromStr;

use super::scheme::P256;
use crate::provider::{Secret, SecretError};

/// Circle's own hosts and paths.
const HOSTS: [&str; 2] = ["api.circle.com", "api-sandbox.circle.com"];
const PATHS: [&str; 3] = [
    "/v2/notifications/publicKey",
    "/v2/cpn/notifications/publicKey",
    "/v2/stablefx/notifications/publicKey",
];

/// Circle's keys, for [`circle`](super::circle).
///
/// Its text form is the address of [`fetched`](Self::fetched) keys, or the [`given`](Self::given)
/// key.
#[derive(Clone, Debug)]
pub struct CircleKeys(pub(super) Keys);

#[derive(Clone, Debug)]
pub(super) enum Keys {
    /// The address, without a slash at its end.
    Fetched(String),
    /// The public key, which verifies. In tests, the private key, which can also sign.
    Given(Secret),
}

impl CircleKeys {
    /// The keys that Circle's API serves below an address, such as
    /// `https://api.circle.com/v2/notifications/publicKey`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is not one of Circle's own addresses, because your API key is sent to
    /// it.
    pub fn fetched(address: impl Into<String>) -> Result<Self, SecretError> {
        let address = address.into();
        let address = address.strip_suffix('/').unwrap_or(&address);
        let is_known = address.strip_prefix("https://").is_some_and(|rest| {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            HOSTS.contains(&host) && PATHS.contains(&path)
        });
        match is_known {
            true => Ok(Self(Keys::Fetched(address.to_owned()))),
            false => Err(SecretError::new(
                "it is not the address of Circle's keys, such as \
                 `https://api.circle.com/v2/notifications/publicKey`",
            )),
        }
    }

    /// The single key of a subscription, in PEM or base64, as Circle's API shows it.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is not a P-256 key.
    pub fn given(public_key: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let key = Secret::new(public_key)?;
        match P256.key_of(key.expose()) {
            Some(_) => Ok(Self(Keys::Given(key))),
            None => Err(SecretError::new(
                "it is neither a P-256 key in PEM or base64 nor the address of Circle's keys",
            )),
        }
    }
}

impl FromStr for CircleKeys {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        match text.starts_with("https://") {
            true => Self::fetched(text),
            false => Self::given(text),
        }
    }
}

impl From<CircleKeys> for Secret {
    fn from(keys: CircleKeys) -> Self {
        match keys.0 {
            Keys::Fetched(address) => Self::of_text_form(address),
            Keys::Given(key) => key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_at_circle_alone() {
        let is_usable = |text: &str| text.parse::<CircleKeys>().is_ok();
        for host in HOSTS {
            for path in PATHS {
                assert!(is_usable(&format!("https://{host}{path}")), "{host}{path}");
                assert!(is_usable(&format!("https://{host}{path}/")), "{host}{path}");
            }
        }
        for wrong in [
            "https://evil.test/v2/notifications/publicKey",
            "https://api.circle.com.evil.test/v2/notifications/publicKey",
            "https://api.circle.com@evil.test/v2/notifications/publicKey",
            "https://user@api.circle.com/v2/notifications/publicKey",
            "https://api.circle.com:444/v2/notifications/publicKey",
            "http://api.circle.com/v2/notifications/publicKey",
            "https://api.circle.com/v2/notifications/publicKey?x=",
            "https://api.circle.com/v2/../v2/notifications/publicKey",
            "https://api.circle.com/v1/payouts",
            "https://api.circle.com",
        ] {
            assert!(!is_usable(wrong), "{wrong}");
        }
    }
}
