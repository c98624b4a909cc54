//! Signing secrets: never blank, never printed. A scheme tries all of them, newest first, and `verify.rs` finds out
//! which one matched. Other values that presets take in place of a secret, such as a pair of keys, are passed on as a
//! secret that contains their text form.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A secret shared with a provider.
///
/// It cannot be blank, because anyone could sign with a blank key. `Debug` prints it redacted, and there is no
/// `Display`.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

/// Prefixes that providers put before the secret. A value that consists only of such a prefix counts as blank.
const PREFIXES: [&str; 3] = ["whsec_", "whsk_", "whpk_"];

impl Secret {
    /// A secret that belongs to nobody. It is valid base64, which some schemes decode.
    pub(crate) fn dummy() -> Self {
        Self(b"bm9ib2R5".as_slice().into())
    }

    /// Takes a secret as the provider shows it, including its prefix.
    ///
    /// ```
    /// use idempotent_webhook::Secret;
    ///
    /// assert!(Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_ok());
    /// assert!(Secret::new("").is_err());
    /// assert!(Secret::new("a line of a file\n").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the secret is blank, has nothing after a prefix such as `whsec_`, or starts or ends with
    /// white space. A line break read along with the secret from a file would become part of the key, and no
    /// signature would match. A key in PEM may end with a line break.
    pub fn new(value: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let secret = Self::exact(value)?;
        let bytes = &*secret.0;
        let is_pem = bytes.starts_with(b"-----BEGIN ");
        if bytes.trim_ascii().len() != bytes.len() && !is_pem {
            return Err(SecretError::new(
                "it begins or ends with white space, such as the line break at the end of a \
                 file: trim it, or use `Secret::exact` if the white space is part of the secret",
            ));
        }
        Ok(secret)
    }

    /// Takes the exact bytes of a secret, including white space at its start or end.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the secret is blank or has nothing after a prefix such as `whsec_`.
    pub fn exact(value: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let value = value.into();
        let text = String::from_utf8_lossy(&value);
        let core = text.trim();
        let core = PREFIXES
            .iter()
            .find_map(|prefix| core.strip_prefix(prefix))
            .unwrap_or(core);
        if core.trim().is_empty() {
            return Err(SecretError::new("it is blank"));
        }
        Ok(Self(value.into()))
    }

    /// A secret that contains the text form of a value of another type. That type has already checked it.
    pub(crate) fn of_text_form(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into().into())
    }

    /// A secret that contains the text form of a pair, such as a name and a secret.
    pub(crate) fn of_pair(first: &str, second: &Secret) -> Self {
        Self::of_text_form([first.as_bytes(), b":", &second.0].concat())
    }

    /// The two values of a pair's text form.
    pub(crate) fn split_pair(text: &str) -> Option<(&str, Self)> {
        let (first, second) = text.split_once(':')?;
        Some((first, Self::exact(second).ok()?))
    }

    /// The value whose text form this secret contains, such as an [`SnsTopic`](crate::presets::SnsTopic).
    pub(crate) fn parse<T: FromStr<Err = SecretError>>(&self) -> Result<T, SecretError> {
        self.as_text()?.parse()
    }

    /// The secret as text, to be part of a text form.
    pub(crate) fn as_text(&self) -> Result<&str, SecretError> {
        std::str::from_utf8(&self.0).map_err(|_| SecretError::new("it is not UTF-8"))
    }

    /// Whether the secret can be the last part of a text form. The text form may come from a file that ends with a
    /// line break, so the last part must not start or end with white space.
    pub(crate) fn is_last_part(&self) -> bool {
        self.as_text().is_ok_and(|text| text.trim() == text)
    }

    /// The bytes of the secret, for a [`SignatureScheme`](crate::provider::signature::SignatureScheme) of
    /// your own.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// Whether a text can be one part of a text form in which this character separates the parts.
pub(crate) fn is_part(text: &str, separator: char) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(separator)
}

/// A secret that cannot be used. The text says why, and shows nothing of the secret.
#[derive(Clone, Debug)]
pub struct SecretError(&'static str);

impl SecretError {
    /// Creates an error, for a [`SignatureScheme`](crate::provider::signature::SignatureScheme) of your own.
    pub const fn new(reason: &'static str) -> Self {
        Self(reason)
    }

    /// Why the secret cannot be used, without the introductory words of `Display`.
    pub const fn reason(&self) -> &'static str {
        self.0
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the webhook secret cannot be used: {}", self.0)
    }
}

impl std::error::Error for SecretError {}

/// One or more secrets that are valid at the same time.
///
/// There are several while a secret is being rotated: the provider signs with the old secret until it has switched
/// to the new one. List the newest secret first. The layer
/// [counts](crate::documentation::providers#rotating-a-secret) which of them verify.
///
/// ```
/// use idempotent_webhook::{Secret, Secrets, presets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secrets = Secrets::new(Secret::new("the new one")?).and(Secret::new("the old one")?);
/// let provider = presets::github(secrets);
///
/// // From a list in the environment:
/// let list = "the new one,the old one".split(',').map(Secret::new).collect::<Result<Vec<_>, _>>()?;
/// let secrets = Secrets::try_from(list)?;
/// # Ok(())
/// # }
/// ```
///
/// Some presets take values of their own type in place of a [`Secret`], such as
/// [`LiveKitKey`](crate::presets::LiveKitKey). Several such values can be given in the same way as several secrets:
///
/// ```
/// use idempotent_webhook::presets::{self, LiveKitKey};
/// use idempotent_webhook::{Secret, Secrets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let new = LiveKitKey::new("APInew", Secret::new("the new one")?)?;
/// let old = LiveKitKey::new("APIold", Secret::new("the old one")?)?;
/// let livekit = presets::livekit(Secrets::new(new).and(old));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Secrets<S = Secret>(Vec<S>);

impl<S> Secrets<S> {
    /// A single secret.
    pub fn new(secret: S) -> Self {
        Self(vec![secret])
    }

    /// Adds another secret. Secrets are tried in the order in which they were added.
    #[must_use]
    pub fn and(mut self, secret: S) -> Self {
        self.0.push(secret);
        self
    }

    /// The secrets: at least one, unless a [`KeySource`](super::keys::KeySource) was given in place of secrets.
    pub fn iter(&self) -> impl Iterator<Item = &S> {
        self.0.iter()
    }
}

impl<S: Into<Secret>> Secrets<S> {
    /// The text forms of the secrets.
    pub(super) fn into_text_forms(self) -> Secrets {
        Secrets(self.0.into_iter().map(Into::into).collect())
    }
}

impl Secrets {
    /// No secrets, for a provider that needs only public keys.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }
}

impl<S: Into<Secret>> From<S> for Secrets<S> {
    fn from(secret: S) -> Self {
        Self::new(secret)
    }
}

/// Fails if the list is empty.
impl<S> TryFrom<Vec<S>> for Secrets<S> {
    type Error = SecretError;

    fn try_from(secrets: Vec<S>) -> Result<Self, SecretError> {
        if secrets.is_empty() {
            return Err(SecretError::new("the list of secrets is empty"));
        }
        Ok(Self(secrets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_secrets_are_refused() {
        for blank in ["", " ", "\t\r\n", "whsec_", " whsec_ \n", "whsk_", "\u{a0}"] {
            assert!(Secret::new(blank).is_err(), "{blank:?}");
            assert!(Secret::exact(blank).is_err(), "{blank:?}");
        }
        assert!(Secrets::<Secret>::try_from(Vec::new()).is_err());
    }

    #[test]
    fn white_space_at_the_ends_is_refused_unless_it_is_meant() -> Result<(), SecretError> {
        for spaced in ["whsec_a\n", "a\r\n", " a", "a\t"] {
            assert!(Secret::new(spaced).is_err(), "{spaced:?}");
            assert_eq!(Secret::exact(spaced)?.expose(), spaced.as_bytes());
        }
        let pem = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n";
        assert_eq!(Secret::new(pem)?.expose(), pem.as_bytes());
        Ok(())
    }

    #[test]
    fn a_secret_is_kept_to_the_byte() -> Result<(), SecretError> {
        assert_eq!(Secret::new("whsec_a b")?.expose(), b"whsec_a b");
        assert_eq!(Secret::new(vec![0xff, 0x00])?.expose(), [0xff, 0x00]);
        Ok(())
    }

    #[test]
    fn debug_shows_nothing_of_a_secret() -> Result<(), SecretError> {
        let secrets = Secrets::new(Secret::new("hunter2")?);
        assert_eq!(format!("{secrets:?}"), "Secrets([Secret(redacted)])");
        Ok(())
    }
}
