//! PayPal's signature of a checksum of the body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Uri};

use crate::provider::signature::public_key::rsa::{RsaHash, public_key, sign};
use crate::provider::signature::timestamp::TimeFormat;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

const ID: HeaderName = HeaderName::from_static("paypal-transmission-id");
const TIME: HeaderName = HeaderName::from_static("paypal-transmission-time");
const SIGNATURE: HeaderName = HeaderName::from_static("paypal-transmission-sig");
const ALGORITHM: HeaderName = HeaderName::from_static("paypal-auth-algo");
const CERTIFICATE: HeaderName = HeaderName::from_static("paypal-cert-url");
const RSA_SHA256: &str = "SHA256withRSA";

#[derive(Debug)]
pub(super) struct PayPal;

/// What the head of a request has.
struct Head<'a> {
    id: &'a str,
    time: &'a str,
    signature: Vec<u8>,
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        if only_value(headers, &ALGORITHM)? != RSA_SHA256 {
            return Err(SignatureError::MalformedHeader(ALGORITHM));
        }
        if !is_of_paypal(only_value(headers, &CERTIFICATE)?) {
            return Err(SignatureError::MalformedHeader(CERTIFICATE));
        }
        let part = |name: HeaderName| -> Result<&'a str, SignatureError> {
            let text = only_value(headers, &name)?;
            // It would move the borders of the signed parts.
            match text.contains('|') {
                true => Err(SignatureError::MalformedHeader(name)),
                false => Ok(text),
            }
        };
        Ok(Self {
            id: part(ID)?,
            time: part(TIME)?,
            signature: BASE64
                .decode(only_value(headers, &SIGNATURE)?)
                .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))?,
        })
    }
}

fn is_of_paypal(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    uri.is_some_and(|uri| {
        let is_https = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default();
        is_https && (host == "paypal.com" || host.ends_with(".paypal.com"))
    })
}

/// The webhook's id and the key in a secret.
fn parts(secret: &Secret) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(secret.expose()).ok()?;
    let (id, key) = text.split_once(':')?;
    (!id.is_empty() && !id.contains('|')).then_some((id, key))
}

fn content(id: &str, time: &str, webhook: &str, body: &[u8]) -> String {
    format!("{id}|{time}|{webhook}|{}", crc32(body))
}

impl SignatureScheme for PayPal {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        let mut error = SignatureError::NoMatch;
        for secret in secrets.iter() {
            let parts = parts(secret);
            let key = parts.and_then(|(_, key)| public_key(key.as_bytes()));
            let (Some((webhook, _)), Some(key)) = (parts, key) else {
                error = SignatureError::UnusableSecret;
                continue;
            };
            let content = content(head.id, head.time, webhook, request.body());
            if key.verify(RsaHash::Sha256, content.as_bytes(), &head.signature) {
                return Ok(Signed::new());
            }
        }
        Err(error)
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "RSA PKCS #1, SHA-256, of a CRC-32 of the body".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match parts(secret).and_then(|(_, key)| public_key(key.as_bytes())) {
            Some(_) => Ok(()),
            None => Err(SecretError::new(
                "PayPal needs `<webhook id>:<public key in PEM>`",
            )),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        const TRANSMISSION: &str = "00000000-0000-0000-0000-000000000000";
        const URL: &str = "https://api.paypal.com/v1/notifications/certs/CERT-test";
        let (webhook, key) =
            parts(secret).ok_or(SignError::new("the secret is not `<webhook id>:<key>`"))?;
        let time = TimeFormat::Rfc3339.format(request.time());
        let content = content(TRANSMISSION, &time, webhook, request.body());
        let signature = sign(RsaHash::Sha256, key.as_bytes(), content.as_bytes())
            .ok_or(SignError::new("the key of the secret is not a private one"))?;
        request.insert_header(ID, TRANSMISSION)?;
        request.insert_header(TIME, time)?;
        request.insert_header(CERTIFICATE, URL)?;
        request.insert_header(ALGORITHM, RSA_SHA256)?;
        request.insert_header(SIGNATURE, BASE64.encode(signature))
    }
}

/// The CRC-32 of ISO 3309, as in zlib.
fn crc32(data: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            #[expect(clippy::cast_possible_truncation, reason = "below 256")]
            let mut entry = index as u32;
            let mut bit = 0;
            while bit < 8 {
                entry = (entry >> 1) ^ (POLYNOMIAL * (entry & 1));
                bit += 1;
            }
            #[expect(clippy::indexing_slicing, reason = "below 256")]
            {
                table[index] = entry;
            }
            index += 1;
        }
        table
    };
    !data.iter().fold(!0, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        let entry = TABLE.get(usize::from(low ^ byte)).unwrap_or(&0);
        (crc >> 8) ^ entry
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_agrees_with_its_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_certificate_is_on_a_host_of_paypal() {
        for right in [
            "https://api.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1",
        ] {
            assert!(is_of_paypal(right), "{right}");
        }
        for wrong in [
            "",
            "api.paypal.com",
            "http://api.paypal.com/",
            "https://evilpaypal.com/",
            "https://paypal.com.evil.example/",
            "https://evil.example/.paypal.com",
            "https://evil.example#.paypal.com",
            "https://.paypal.com@evil.example/",
        ] {
            assert!(!is_of_paypal(wrong), "{wrong}");
        }
    }
}
