//! The keys at an address.

use std::fmt;

use serde_json::Value;

use crate::provider::signature::PublicKey;
#[cfg(feature = "x509")]
use crate::provider::signature::x509::Certificate;

/// The public keys of a provider.
#[derive(Clone, Debug)]
pub struct KeySet {
    keys: Vec<Key>,
    /// In the order of the text. The key of a certificate may be of an unknown kind.
    #[cfg(feature = "x509")]
    certificates: Vec<Certificate>,
}

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    key: PublicKey,
}

/// A text has no key that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySetError;

impl fmt::Display for KeySetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there is no usable key in it: neither JSON Web Keys nor PEM, or of an algorithm whose \
             feature is off",
        )
    }
}

impl std::error::Error for KeySetError {}

impl KeySet {
    /// Reads keys: a JSON Web Key or a set of them (RFC 7517), a public key in PEM, certificates in PEM
    /// (feature `x509`), or what Circle, eBay, GitHub and Plaid answer. Keys that are not for signatures,
    /// those that have expired, and those of unknown kinds are left out. An RSA key has at least 2048 bits,
    /// unless it is a public key in PEM.
    ///
    /// A key without an id, such as one in PEM, matches any id. For tests, a private key in PEM (PKCS #8)
    /// will do.
    ///
    /// # Errors
    ///
    /// [`KeySetError`] if no key is left.
    pub fn parse(text: &str) -> Result<Self, KeySetError> {
        #[cfg(feature = "x509")]
        if let Some(certificates) = Certificate::from_pem(text.trim()) {
            let key = |key| Key { id: None, key };
            return Ok(Self {
                keys: certificates
                    .iter()
                    .filter_map(|of| of.key().map(key))
                    .collect(),
                certificates,
            });
        }
        let keys: Vec<Key> = match serde_json::from_str::<Value>(text) {
            Ok(json) => match ["keys", "public_keys"]
                .iter()
                .find_map(|name| json.get(name))
            {
                Some(Value::Array(keys)) => keys.iter().filter_map(Key::from_json).collect(),
                Some(_) => Vec::new(),
                None => Key::from_json(&json).into_iter().collect(),
            },
            Err(_) => Key::from_pem(text.trim()).into_iter().collect(),
        };
        if keys.is_empty() {
            return Err(KeySetError);
        }
        Ok(Self {
            keys,
            #[cfg(feature = "x509")]
            certificates: Vec::new(),
        })
    }

    /// The keys with this id, and those that have none.
    pub fn with_id<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a PublicKey> {
        let is_meant = move |key: &&Key| key.id.as_deref().is_none_or(|known| known == id);
        self.keys.iter().filter(is_meant).map(|key| &key.key)
    }

    /// All keys.
    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().map(|key| &key.key)
    }

    /// The certificates, in the order of the text.
    #[cfg(feature = "x509")]
    pub(in crate::provider) fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// The id of the first key, for tests, which sign with it.
    pub(in crate::provider) fn first(&self) -> Option<(Option<&str>, &PublicKey)> {
        let key = self.keys.first()?;
        Some((key.id.as_deref(), &key.key))
    }
}

impl Key {
    fn from_json(json: &Value) -> Option<Self> {
        let text = |names: &[&str]| names.iter().find_map(|name| json.get(name)?.as_str());
        if let Some(inner @ Value::Object(_)) = json.get("key").or(json.get("data")) {
            return Self::from_json(inner);
        }
        if json.get("expired_at").is_some_and(|at| !at.is_null())
            || text(&["use"]).is_some_and(|purpose| purpose != "sig")
        {
            return None;
        }
        let key = match text(&["key", "publicKey"]) {
            Some(key) => PublicKey::from_text(key)?,
            None => PublicKey::from_jwk(json.as_object()?)?,
        };
        let id = text(&["kid", "key_identifier", "id"]).map(str::to_owned);
        Some(Self { id, key })
    }

    fn from_pem(text: &str) -> Option<Self> {
        let key = PublicKey::from_text(text.starts_with("-----BEGIN ").then_some(text)?)?;
        Some(Self { id: None, key })
    }
}
