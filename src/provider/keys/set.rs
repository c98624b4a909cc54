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
    /// Reads keys: a JSON Web Key or a set of them (RFC 7517), public keys or certificates (feature `x509`)
    /// in PEM, or what Circle, eBay, GitHub and Plaid answer. Keys that are not for signatures,
    /// those that have expired, and those of unknown kinds are left out. An RSA key has at least 2048 bits,
    /// unless it is a public key in PEM.
    ///
    /// A key without an id, such as one in PEM, matches any id. For tests, a private key (PKCS #8) will do,
    /// with its certificate after it where the provider has one.
    ///
    /// # Errors
    ///
    /// [`KeySetError`] if no key is left.
    pub fn parse(text: &str) -> Result<Self, KeySetError> {
        match serde_json::from_str::<Value>(text) {
            Ok(json) => Self::of_json(&json).ok_or(KeySetError),
            Err(_) => Self::of_pem(text).ok_or(KeySetError),
        }
    }

    fn of_json(json: &Value) -> Option<Self> {
        let lists = ["keys", "public_keys"];
        let keys: Vec<Key> = match lists.iter().find_map(|name| json.get(name)) {
            Some(list) => list.as_array()?.iter().filter_map(Key::from_json).collect(),
            None => vec![Key::from_json(json)?],
        };
        (!keys.is_empty()).then_some(Self {
            keys,
            #[cfg(feature = "x509")]
            certificates: Vec::new(),
        })
    }

    /// Keys come before those of certificates, so that a test signs with the private one.
    fn of_pem(text: &str) -> Option<Self> {
        let blocks = || pem_blocks(text);
        let keys = blocks().filter_map(PublicKey::from_text);
        #[cfg(feature = "x509")]
        let certificates: Vec<_> = blocks()
            .filter(|block| block.starts_with("-----BEGIN CERTIFICATE-----"))
            .map(Certificate::from_pem)
            .collect::<Option<_>>()?;
        #[cfg(feature = "x509")]
        let keys = keys.chain(certificates.iter().filter_map(Certificate::key));
        let keys: Vec<_> = keys.map(|key| Key { id: None, key }).collect();
        #[cfg(feature = "x509")]
        let is_empty = keys.is_empty() && certificates.is_empty();
        #[cfg(not(feature = "x509"))]
        let is_empty = keys.is_empty();
        (!is_empty).then_some(Self {
            keys,
            #[cfg(feature = "x509")]
            certificates,
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

/// The blocks of a text in PEM, with the lines around them.
fn pem_blocks(text: &str) -> impl Iterator<Item = &str> {
    let begins = text.match_indices("-----BEGIN ").map(|(begin, _)| begin);
    begins.filter_map(|begin| {
        let block = text.get(begin..)?;
        let end = block.find("-----END ")?;
        let label = block.get(end + "-----END ".len()..)?.find("-----")?;
        block.get(..end + "-----END ".len() + label + "-----".len())
    })
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
}
