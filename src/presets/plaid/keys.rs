//! Where Plaid's keys come from.

use std::str::FromStr;

use crate::provider::keys::KeySet;
use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

const SANDBOX: &str = "sandbox:";
const MALFORMED: SecretError = SecretError::new(
    "Plaid takes `<client id>:<secret>`, or a JSON Web Key of P-256 that has not expired",
);

/// Plaid's keys, for [`plaid`](super::plaid).
///
/// Its text form is `<client id>:<secret>` or, for the sandbox, `sandbox:<client id>:<secret>`. For a
/// [`given`](Self::given) key, it is the key's JSON.
#[derive(Clone, Debug)]
pub struct PlaidKeys(pub(super) Keys);

#[derive(Clone, Debug)]
pub(super) enum Keys {
    /// Keys from Plaid's API, fetched with the API keys of an account.
    Fetched {
        is_sandbox: bool,
        client_id: String,
        secret: Secret,
    },
    /// The public key, which verifies. In tests, the private key, which can also sign.
    Given(Secret),
}

impl PlaidKeys {
    /// The keys at `production.plaid.com`, which requires your client id and secret.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the client id or the secret contains a colon, if the client id is blank, or if the secret is
    /// not UTF-8.
    pub fn production(client_id: impl Into<String>, secret: Secret) -> Result<Self, SecretError> {
        Self::fetched(false, client_id.into(), secret)
    }

    /// The keys at `sandbox.plaid.com`, which requires your client id and the sandbox secret.
    ///
    /// # Errors
    ///
    /// The errors of [`production`](Self::production).
    pub fn sandbox(client_id: impl Into<String>, secret: Secret) -> Result<Self, SecretError> {
        Self::fetched(true, client_id.into(), secret)
    }

    /// A single key, as the JSON Web Key that Plaid's API returns. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is not a P-256 key, or if it has expired.
    pub fn given(jwk: impl Into<String>) -> Result<Self, SecretError> {
        let jwk = jwk.into();
        match KeySet::parse(&jwk) {
            Ok(_) => Ok(Self(Keys::Given(Secret::exact(jwk)?))),
            Err(_) => Err(SecretError::new(
                "it is not a JSON Web Key of P-256 that has not expired",
            )),
        }
    }

    fn fetched(is_sandbox: bool, client_id: String, secret: Secret) -> Result<Self, SecretError> {
        let is_usable = |part| is_part(part, ':');
        match is_usable(&client_id) && secret.as_text().is_ok_and(is_usable) {
            true => Ok(Self(Keys::Fetched {
                is_sandbox,
                client_id,
                secret,
            })),
            false => Err(MALFORMED),
        }
    }
}

impl FromStr for PlaidKeys {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        if text.starts_with('{') {
            return Self::given(text);
        }
        let account = text.strip_prefix(SANDBOX);
        let pair = Secret::split_pair(account.unwrap_or(text));
        let (client_id, secret) = pair.ok_or(MALFORMED)?;
        Self::fetched(account.is_some(), client_id.to_owned(), secret)
    }
}

impl From<PlaidKeys> for Secret {
    fn from(keys: PlaidKeys) -> Self {
        match keys.0 {
            Keys::Fetched {
                is_sandbox: true,
                client_id,
                secret,
            } => Self::of_pair(&format!("{SANDBOX}{client_id}"), &secret),
            Keys::Fetched {
                is_sandbox: false,
                client_id,
                secret,
            } => Self::of_pair(&client_id, &secret),
            Keys::Given(key) => key,
        }
    }
}
