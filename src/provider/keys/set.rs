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
    /// The certificates, in the order of the text. The key of a certificate may be of an unknown kind, so it is not
    /// always in `keys`.
    #[cfg(feature = "x509")]
    certificates: Vec<Certificate>,
}

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    key: PublicKey,
}

/// The error for a text that contains no usable key.
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
    /// Reads keys from a text.
    ///
    /// The text is a JSON Web Key or a set of them (RFC 7517), public keys or certificates (feature `x509`) in PEM,
    /// or an answer of Circle, eBay, GitHub or Plaid. Keys that are not for signatures, keys that have expired, and
    /// keys of unknown kinds are left out. An RSA key must have at least 2048 bits, unless it is a public key in
    /// PEM.
    ///
    /// A key without an id, such as a key in PEM, matches any id. In tests, you can use a private key: in PEM
    /// (PKCS #8), followed by its certificate if the provider has one, or as a JSON Web Key of Ed25519 or P-256,
    /// whose id is then used as the id in the token.
    ///
    /// # Errors
    ///
    /// [`KeySetError`] if no key is left.
    pub fn parse(text: &str) -> Result<Self, KeySetError> {
        let keys = Self::read(text)?;
        (!keys.is_empty()).then_some(keys).ok_or(KeySetError)
    }

    /// Like [`parse`](Self::parse), but if no key is left because a key has expired, the result is an empty set, not an
    /// error. A withdrawn key must not be mistaken for a key that cannot be read.
    pub(super) fn read(text: &str) -> Result<Self, KeySetError> {
        match serde_json::from_str::<Value>(text) {
            Ok(json) => Self::of_json(&json).ok_or(KeySetError),
            Err(_) => Self::of_pem(text).ok_or(KeySetError),
        }
    }

    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            keys: Vec::new(),
            #[cfg(feature = "x509")]
            certificates: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        #[cfg(feature = "x509")]
        if !self.certificates.is_empty() {
            return false;
        }
        self.keys.is_empty()
    }

    fn of_json(json: &Value) -> Option<Self> {
        let lists = ["keys", "public_keys"];
        let all: Vec<&Value> = match lists.iter().find_map(|name| json.get(name)) {
            Some(list) => list.as_array()?.iter().collect(),
            None => {
                let inner = json.get("key").or(json.get("data"));
                vec![inner.filter(|inner| inner.is_object()).unwrap_or(json)]
            }
        };
        let keys: Vec<Key> = all.iter().filter_map(|key| Key::from_json(key)).collect();
        let are_known = !keys.is_empty() || all.iter().any(|key| has_ended(key));
        are_known.then_some(Self {
            keys,
            #[cfg(feature = "x509")]
            certificates: Vec::new(),
        })
    }

    /// Keys outside of certificates come before the keys of certificates, so that a test signs with the private key.
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
        let keys = Self {
            keys: keys.map(|key| Key { id: None, key }).collect(),
            #[cfg(feature = "x509")]
            certificates,
        };
        (!keys.is_empty()).then_some(keys)
    }

    /// The keys with this id, and keys without an id.
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
    pub(crate) fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// The first key and its id, for tests, which sign with it.
    pub(crate) fn first(&self) -> Option<(Option<&str>, &PublicKey)> {
        let key = self.keys.first()?;
        Some((key.id.as_deref(), &key.key))
    }
}

/// The blocks of a text in PEM, each with its `BEGIN` and `END` line.
fn pem_blocks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let block = text.get(text.find("-----BEGIN ")?..)?;
        let end = block.find("-----END ")? + "-----END ".len();
        let label = block.get(end..)?.find("-----")?;
        let (block, rest) = block.split_at_checked(end + label + "-----".len())?;
        text = rest;
        Some(block)
    })
}

/// Whether the provider says that a key is no longer used.
fn has_ended(key: &Value) -> bool {
    key.get("expired_at").is_some_and(|at| !at.is_null())
}

impl Key {
    fn from_json(json: &Value) -> Option<Self> {
        let text = |names: &[&str]| names.iter().find_map(|name| json.get(name)?.as_str());
        let is_for = |name: &str, purpose: &str| match json.get(name) {
            None => true,
            Some(Value::Array(all)) => all.iter().any(|one| one == purpose),
            Some(one) => one == purpose,
        };
        if has_ended(json) || !is_for("use", "sig") || !is_for("key_ops", "verify") {
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

#[cfg(all(test, feature = "ed25519"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_of_pem_follow_each_other() {
        let block = |label: &str| format!("-----BEGIN {label}-----\nAA==\n-----END {label}-----");
        let (a, b) = (block("A"), block("B"));
        let text = format!("a line\n{a}\nanother\n{b}\n-----BEGIN C-----\nAA==");
        assert_eq!(pem_blocks(&text).collect::<Vec<_>>(), [&a, &b]);
        // This must take one pass: otherwise, the text would be searched to its end for each `BEGIN`.
        let many = "-----BEGIN ".repeat(500_000);
        assert_eq!(pem_blocks(&many).count(), 0);
    }

    #[test]
    fn keys_that_are_not_for_signatures_and_those_that_have_ended_are_left_out() {
        // RFC 8037, appendix A.
        let key = |member: &str, value: Value| {
            let mut key = json!({"kty": "OKP", "crv": "Ed25519", "kid": member,
                "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
            if let Some(members) = key.as_object_mut() {
                members.insert(member.to_owned(), value);
            }
            key
        };
        for (kept, member, value) in [
            (true, "use", json!("sig")),
            (false, "use", json!("enc")),
            (true, "key_ops", json!(["verify"])),
            (false, "key_ops", json!(["encrypt"])),
            (true, "expired_at", Value::Null),
            (false, "expired_at", json!(1_790_000_000)),
        ] {
            let key = key(member, value);
            let read = KeySet::parse(&json!({"keys": [key]}).to_string());
            assert_eq!(read.is_ok(), kept, "{key}");
        }
        // An expired key is not mistaken for a key that cannot be read.
        let ended = key("expired_at", json!(1)).to_string();
        assert!(KeySet::read(&ended).is_ok_and(|keys| keys.is_empty()));
        assert!(KeySet::read(r#"{"keys":[]}"#).is_err());
    }
}
