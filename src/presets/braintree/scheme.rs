//! Braintree's signature of the payload in a form.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{CONTENT_TYPE, HeaderValue};

use super::keys::BraintreeKeys;
use crate::provider::digest::sha256_hex;
use crate::provider::signature::digests::{Hash, hmac, sha1};
use crate::provider::signature::form::{encode, fields, only_field};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The name of the value with the payload's digest.
pub(super) const PAYLOAD: &str = "payload";
/// The name of the value with the notification's kind.
pub(super) const KIND: &str = "kind";

const SIGNATURE_FIELD: &str = "bt_signature";
const PAYLOAD_FIELD: &str = "bt_payload";

/// The signed content of a test that sets no body.
const EMPTY: &str = "<notification><kind>test</kind></notification>";

/// The maximum number of pairs that are checked. Checking more would only cost time.
const MAX_PAIRS: usize = 10;

#[derive(Debug)]
pub(super) struct Braintree;

impl SignatureScheme for Braintree {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let fields = fields(request.body()).ok_or(SignatureError::MalformedBody)?;
        let field = |name| only_field(&fields, name).ok_or(SignatureError::MalformedBody);
        let pairs = std::str::from_utf8(field(SIGNATURE_FIELD)?)
            .map_err(|_| SignatureError::MalformedBody)?;
        let payload = field(PAYLOAD_FIELD)?;
        let mut error = SignatureError::NoMatch;
        for secret in secrets.iter() {
            match Keys::of(secret) {
                Ok(keys) if keys.has_signed(pairs, payload) => return read(payload),
                Ok(_) => {}
                Err(_) => error = SignatureError::UnusableSecret,
            }
        }
        Err(error)
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA1 in hex, in the body".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<BraintreeKeys>().map(drop)
    }

    // Fields other than the signature and the payload are not signed.
    fn signs_body_bytes(&self) -> bool {
        false
    }

    /// Signs the body as the payload, unless the body is already a form with a payload.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let keys = Keys::of(secret)?;
        let fields = fields(request.body()).unwrap_or_default();
        let payload = match only_field(&fields, PAYLOAD_FIELD) {
            Some(payload) => payload.to_vec(),
            None if request.body() == b"{}" => BASE64.encode(EMPTY).into_bytes(),
            None => BASE64.encode(request.body()).into_bytes(),
        };
        let signature = format!("{}|{}", keys.public, keys.mac(&payload));
        request.set_body(format!(
            "{SIGNATURE_FIELD}={}&{PAYLOAD_FIELD}={}",
            encode(signature.as_bytes(), "-_."),
            encode(&payload, "-_.")
        ));
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.insert_header(CONTENT_TYPE, content_type)
    }
}

/// The keys, ready for use.
struct Keys {
    public: String,
    /// The key of the HMAC.
    derived: Vec<u8>,
}

impl Keys {
    fn of(secret: &Secret) -> Result<Self, SecretError> {
        let keys: BraintreeKeys = secret.parse()?;
        Ok(Self {
            public: keys.public_key,
            derived: sha1(keys.private_key.expose()),
        })
    }

    fn mac(&self, payload: &[u8]) -> String {
        hex::encode(hmac(Hash::Sha1, &self.derived, [payload]))
    }

    /// Whether one of the pairs was made with this key. Braintree signs the line break at the end
    /// of the payload, which some form parsers remove.
    fn has_signed(&self, pairs: &str, payload: &[u8]) -> bool {
        let pairs = pairs.split('&').take(MAX_PAIRS);
        let of_key = pairs.filter_map(|pair| {
            let (public, signature) = pair.split_once('|')?;
            (public == self.public).then_some(signature)
        });
        let signatures: Vec<_> = of_key.collect();
        // Computes two MACs, regardless of the number of signatures. Computes none if all signatures name another key.
        !signatures.is_empty()
            && [payload, &[payload, b"\n"].concat()].iter().any(|payload| {
                let mac = self.mac(payload);
                let mut signatures = signatures.iter();
                signatures.any(|signature| is_same(mac.as_bytes(), signature.as_bytes()))
            })
    }
}

/// The answer that Braintree expects to a challenge.
pub(super) fn answer(secret: &Secret, challenge: &str) -> Option<String> {
    let keys = Keys::of(secret).ok()?;
    Some(format!(
        "{}|{}",
        keys.public,
        keys.mac(challenge.as_bytes())
    ))
}

/// The content of a signed payload.
fn read(payload: &[u8]) -> Result<Signed, SignatureError> {
    // Braintree's base64 contains line breaks.
    let base64 = payload.iter().copied().filter(|byte| *byte != b'\n');
    let xml = BASE64
        .decode(base64.collect::<Vec<_>>())
        .map_err(|_| SignatureError::MalformedBody)?;
    // The answer to a challenge is a MAC under the same key. A challenge consists of hexadecimal digits, which may
    // be valid base64, but never base64 of XML.
    if !xml.trim_ascii_start().starts_with(b"<") {
        return Err(SignatureError::MalformedBody);
    }
    let signed = Signed::new().value(PAYLOAD, sha256_hex(&xml));
    let kind = std::str::from_utf8(&xml)
        .ok()
        .and_then(|xml| Some(xml.split_once("<kind>")?.1.split_once("</kind>")?.0));
    Ok(match kind {
        Some(kind) => signed.value(KIND, kind),
        None => signed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_not_part_of_the_digest() {
        let digest = |payload: &[u8]| {
            let signed = read(payload).ok()?;
            signed.get_value(PAYLOAD).map(str::to_owned)
        };
        assert!(digest(b"PGE+").is_some());
        assert_eq!(digest(b"PG\nE+\n"), digest(b"PGE+"));
        for wrong in [b"PG E+".as_slice(), b"", b"abcdef0123456789abcdef01"] {
            assert_eq!(digest(wrong), None);
        }
    }
}
