//! JSON Web Tokens and detached signatures in the compact form (RFC 7515).

use std::time::{Duration, SystemTime};

use base64::Engine;
#[cfg(feature = "x509")]
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::HeaderMap;
use http::header::HeaderName;
use serde_json::Value;

use crate::provider::signature::compare::is_same;
use crate::provider::signature::keyed::{Hash, hmac};
use crate::provider::signature::{SignatureError, only_value};

/// A token in the compact form, decoded, whose signature has not been verified yet.
pub(in crate::provider) struct Compact<'a> {
    /// The algorithm that it claims. A scheme compares it with those that it allows.
    pub(in crate::provider) algorithm: String,
    pub(in crate::provider) key_id: Option<String>,
    /// The certificates that it brings, in DER.
    #[cfg(feature = "x509")]
    pub(in crate::provider) certificates: Vec<Vec<u8>>,
    /// The header as it is signed, in base64url.
    pub(in crate::provider) header: &'a str,
    /// The payload as it is signed, in base64url. Empty if it is detached.
    pub(in crate::provider) payload: &'a str,
    pub(in crate::provider) signature: Vec<u8>,
}

impl<'a> Compact<'a> {
    pub(in crate::provider) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('.');
        let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let decoded = Claims(serde_json::from_slice(&BASE64URL.decode(header).ok()?).ok()?);
        // Extensions that must be understood: none is.
        if decoded.0.contains_key("crit") {
            return None;
        }
        Some(Self {
            algorithm: decoded.text("alg")?.to_owned(),
            key_id: decoded.text("kid").map(str::to_owned),
            #[cfg(feature = "x509")]
            certificates: decoded.certificates(),
            header,
            payload,
            signature: BASE64URL.decode(signature).ok()?,
        })
    }

    /// The token in a header that must be there once, with nothing beside it.
    pub(in crate::provider) fn in_header(
        headers: &'a HeaderMap,
        name: &HeaderName,
    ) -> Result<Self, SignatureError> {
        let text = only_value(headers, name)?;
        Self::parse(text).ok_or_else(|| SignatureError::MalformedHeader(name.clone()))
    }

    /// Whether it is signed with this key, by one of these algorithms.
    pub(in crate::provider) fn is_hmac(&self, key: &[u8], allowed: &[Hash]) -> bool {
        let hash = allowed.iter().find(|hash| name(**hash) == self.algorithm);
        hash.is_some_and(|hash| is_same(&hmac(*hash, key, self.signed()), &self.signature))
    }

    /// The signed content of a token that is not detached.
    pub(in crate::provider) fn signed(&self) -> [&'a [u8]; 3] {
        [self.header.as_bytes(), b".", self.payload.as_bytes()]
    }

    /// The claims. Read them after the signature.
    pub(in crate::provider) fn claims(&self) -> Option<Claims> {
        let claims = serde_json::from_slice(&BASE64URL.decode(self.payload).ok()?).ok()?;
        Some(Claims(claims))
    }
}

/// The members of a token's header, or its claims.
pub(in crate::provider) struct Claims(serde_json::Map<String, Value>);

impl Claims {
    #[cfg(test)]
    pub(super) fn new(claims: serde_json::Map<String, Value>) -> Self {
        Self(claims)
    }

    pub(in crate::provider) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// The texts of a member that is one text, or a list of them.
    pub(in crate::provider) fn texts(&self, name: &str) -> Vec<&str> {
        match self.0.get(name) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(one) => one.as_str().into_iter().collect(),
            None => Vec::new(),
        }
    }

    #[cfg(feature = "rsa")]
    pub(in crate::provider) fn is_true(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// The member `x5c`, in which one that is not base64 counts as an empty one.
    #[cfg(feature = "x509")]
    fn certificates(&self) -> Vec<Vec<u8>> {
        let decode = |text: &str| BASE64.decode(text).unwrap_or_default();
        self.texts("x5c").into_iter().map(decode).collect()
    }

    #[cfg(feature = "x509")]
    pub(in crate::provider) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(in crate::provider) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A time in Unix seconds, possibly with a fraction.
    pub(in crate::provider) fn time(&self, name: &str) -> Option<SystemTime> {
        let number = self.0.get(name)?;
        let seconds = match (number.as_u64(), number.as_f64()) {
            (Some(seconds), _) => Duration::from_secs(seconds),
            (None, Some(seconds)) => Duration::try_from_secs_f64(seconds).ok()?,
            (None, None) => return None,
        };
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    }
}

/// The name of an algorithm in a token's header.
fn name(hash: Hash) -> &'static str {
    match hash {
        Hash::Sha256 => "HS256",
        Hash::Sha384 => "HS384",
        Hash::Sha512 => "HS512",
        // No token is signed with these.
        #[cfg(feature = "md5")]
        Hash::Md5 => "",
        #[cfg(feature = "sha1")]
        Hash::Sha1 => "",
    }
}

/// A header or claims, as they are signed.
pub(in crate::provider) fn encode(json: &Value) -> String {
    BASE64URL.encode(json.to_string())
}

/// A token that is signed with HS256.
pub(in crate::provider) fn sign_hs256(key: &[u8], claims: &Value) -> String {
    let header = encode(&serde_json::json!({"alg": "HS256", "typ": "JWT"}));
    let signed = format!("{header}.{}", encode(claims));
    let mac = hmac(Hash::Sha256, key, [signed.as_bytes()]);
    format!("{signed}.{}", BASE64URL.encode(mac))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HS256: &[Hash] = &[Hash::Sha256];

    fn is_signed(token: &str, allowed: &[Hash]) -> Option<bool> {
        Compact::parse(token).map(|token| token.is_hmac(b"key", allowed))
    }

    #[test]
    fn only_an_allowed_algorithm_counts() {
        let token = sign_hs256(b"key", &json!({"a": 1}));
        assert_eq!(is_signed(&token, HS256), Some(true));
        assert_eq!(is_signed(&token, &[Hash::Sha512]), Some(false));
        let (_, rest) = token.split_once('.').unwrap_or_default();
        for header in [
            json!({"alg": "none"}),
            json!({"alg": ""}),
            json!({"alg": "hs256"}),
        ] {
            let token = format!("{}.{rest}", encode(&header));
            assert_eq!(is_signed(&token, HS256), Some(false), "{header}");
        }
        for header in [
            json!({}),
            json!([]),
            json!({"alg": 1}),
            json!({"alg": "HS256", "crit": []}),
        ] {
            let token = format!("{}.{rest}", encode(&header));
            assert_eq!(is_signed(&token, HS256), None, "{header}");
        }
    }

    #[test]
    fn a_token_has_three_parts_in_base64url() {
        let token = sign_hs256(b"key", &json!({"a": 1}));
        for wrong in [
            String::new(),
            "..".into(),
            "a.b".into(),
            format!("{token}."),
            format!("{token}="),
            format!(" {token}"),
            token.replace('.', "..").to_string(),
        ] {
            assert_eq!(is_signed(&wrong, HS256), None, "{wrong}");
        }
    }

    #[test]
    fn claims_have_texts_and_times() {
        let token = sign_hs256(
            b"key",
            &json!({"a": "b", "t": 5, "f": 5.9, "n": -1, "h": 1e300}),
        );
        let claims = Compact::parse(&token).and_then(|token| token.claims());
        let claims = claims.unwrap_or(Claims(serde_json::Map::new()));
        assert_eq!(claims.text("a"), Some("b"));
        assert_eq!(claims.text("t"), None);
        let at = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs_f64(seconds));
        assert_eq!(claims.time("t"), at(5.0));
        assert_eq!(claims.time("f"), at(5.9));
        for none in ["a", "n", "h", "missing"] {
            assert_eq!(claims.time(none), None, "{none}");
        }
    }
}
