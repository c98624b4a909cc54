//! JSON Web Tokens and detached signatures in the compact form (RFC 7515).

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use base64::Engine;
#[cfg(feature = "x509")]
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::HeaderMap;
use http::header::HeaderName;
use serde_json::Value;
use serde_json::value::RawValue;

#[cfg(feature = "x509")]
use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{SignatureError, only_value};

/// The maximum length of a token in a request header, and of a token's own header, in bytes. The header of Apple's
/// tokens, with three certificates, has about 5 KiB.
const MAX_HEADER: usize = 16 * 1024;

/// A token in the compact form, decoded, whose signature has not been verified yet.
pub(crate) struct Compact<'a> {
    /// The algorithm that the token claims. A scheme compares it with the algorithms that it allows.
    pub(crate) algorithm: String,
    pub(crate) key_id: Option<String>,
    /// The certificates that the token carries, in DER.
    #[cfg(feature = "x509")]
    pub(crate) certificates: Vec<Vec<u8>>,
    /// The header as it is signed, in base64url.
    pub(crate) header: &'a str,
    /// The payload as it is signed, in base64url. Empty if the signature is detached.
    pub(crate) payload: &'a str,
    pub(crate) signature: Vec<u8>,
}

impl<'a> Compact<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('.');
        let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        if header.len() > MAX_HEADER {
            return None;
        }
        let decoded = BASE64URL.decode(header).ok()?;
        let decoded = Header(serde_json::from_slice(&decoded).ok()?);
        // `crit` lists extensions that must be understood. This parser understands none.
        if decoded.0.contains_key("crit") {
            return None;
        }
        Some(Self {
            algorithm: decoded.text("alg")?,
            key_id: decoded.text("kid"),
            #[cfg(feature = "x509")]
            certificates: decoded.certificates(),
            header,
            payload,
            signature: BASE64URL.decode(signature).ok()?,
        })
    }

    /// The token in the value of a header.
    pub(crate) fn parse_value(value: &'a str) -> Option<Self> {
        match value.len() <= MAX_HEADER {
            true => Self::parse(value),
            false => None,
        }
    }

    /// The token in a header that must occur once and contain nothing else.
    pub(crate) fn in_header(
        headers: &'a HeaderMap,
        name: &HeaderName,
    ) -> Result<Self, SignatureError> {
        let text = only_value(headers, name)?;
        Self::parse_value(text).ok_or_else(|| SignatureError::MalformedHeader(name.clone()))
    }

    /// Whether the token is signed with this key, by one of these algorithms.
    pub(crate) fn is_hmac(&self, key: &[u8], allowed: &[Hash]) -> bool {
        let hash = allowed.iter().find(|hash| name(**hash) == self.algorithm);
        hash.is_some_and(|hash| is_same(&hmac(*hash, key, self.signed()), &self.signature))
    }

    /// The signed content of a token that is not detached.
    pub(crate) fn signed(&self) -> [&'a [u8]; 3] {
        [self.header.as_bytes(), b".", self.payload.as_bytes()]
    }

    /// The claims. Read them after verifying the signature: they are built as a document, which may take many times
    /// the memory of its text.
    pub(crate) fn claims(&self) -> Option<Claims> {
        let claims = serde_json::from_slice(&BASE64URL.decode(self.payload).ok()?).ok()?;
        Some(Claims(claims))
    }

    /// One claim, read before the signature is verified, without building a document.
    #[cfg(feature = "x509")]
    pub(crate) fn unverified_claim(&self, name: &str) -> Option<Match> {
        let payload = BASE64URL.decode(self.payload).ok()?;
        let found = Reader::new([&JsonPath::member(name)]).read(&payload);
        found.ok()?.pop()
    }
}

/// The members of a token's header. They are read before the signature is verified, so nested values are not built
/// as a document.
struct Header<'a>(HashMap<String, &'a RawValue>);

impl Header<'_> {
    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    /// The member `x5c`. A certificate that is not base64 becomes an empty one. The result is empty if `x5c` is not a
    /// list of texts.
    #[cfg(feature = "x509")]
    fn certificates(&self) -> Vec<Vec<u8>> {
        let chain = self.0.get("x5c").map(|chain| chain.get());
        let chain: Option<Vec<String>> = chain.and_then(|chain| serde_json::from_str(chain).ok());
        let chain = chain.unwrap_or_default().into_iter();
        chain
            .map(|one| BASE64.decode(one).unwrap_or_default())
            .collect()
    }
}

/// The claims of a token.
pub(crate) struct Claims(serde_json::Map<String, Value>);

impl Claims {
    #[cfg(test)]
    pub(super) fn new(claims: serde_json::Map<String, Value>) -> Self {
        Self(claims)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// The texts of a member that is a text or a list of texts.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        match self.0.get(name) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(one) => one.as_str().into_iter().collect(),
            None => Vec::new(),
        }
    }

    #[cfg(feature = "rsa")]
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    #[cfg(feature = "x509")]
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A time in Unix seconds, possibly with a fraction.
    pub(crate) fn time(&self, name: &str) -> Option<SystemTime> {
        let number = self.0.get(name)?;
        let seconds = match (number.as_u64(), number.as_f64()) {
            (Some(seconds), _) => Duration::from_secs(seconds),
            (None, Some(seconds)) => Duration::try_from_secs_f64(seconds).ok()?,
            (None, None) => return None,
        };
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    }
}

/// The name of the algorithm in a token's header.
fn name(hash: Hash) -> &'static str {
    match hash {
        Hash::Sha256 => "HS256",
        Hash::Sha384 => "HS384",
        Hash::Sha512 => "HS512",
        // No token is signed with these hash functions.
        #[cfg(feature = "md5")]
        Hash::Md5 => "",
        #[cfg(feature = "sha1")]
        Hash::Sha1 => "",
    }
}

/// Encodes a header or claims, as they are signed.
pub(crate) fn encode(json: &Value) -> String {
    BASE64URL.encode(json.to_string())
}

/// A token that is signed with HS256.
pub(crate) fn sign_hs256(key: &[u8], claims: &Value) -> String {
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
    fn g9_a_token_is_bounded_before_it_is_read() {
        let token = sign_hs256(b"key", &json!({"a": "x".repeat(MAX_HEADER)}));
        assert!(Compact::parse(&token).is_some());
        assert!(Compact::parse_value(&token).is_none());
        let header = encode(&json!({"alg": "HS256", "x": "x".repeat(MAX_HEADER)}));
        assert!(Compact::parse(&format!("{header}.e30.AAAA")).is_none());
    }

    #[test]
    fn a_key_has_an_id_that_is_a_text() {
        let key_id = |id: &Value| {
            let header = encode(&json!({"alg": "HS256", "kid": id}));
            let token = format!("{header}.e30.AAAA");
            Compact::parse(&token).and_then(|token| token.key_id)
        };
        assert_eq!(key_id(&json!("a\"b")), Some("a\"b".to_owned()));
        for none in [json!(5), json!(null), json!(["a"]), json!({"a": "b"})] {
            assert_eq!(key_id(&none), None, "{none}");
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
