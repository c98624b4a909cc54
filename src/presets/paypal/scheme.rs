//! PayPal's signature of a checksum of the body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use super::webhook::PayPalWebhook;
#[cfg(feature = "x509")]
use crate::provider::keys::KeyRequest;
use crate::provider::keys::is_https_at;
#[cfg(feature = "x509")]
use crate::provider::signature::CertificateError;
use crate::provider::signature::timestamp::TimeFormat;
use crate::provider::signature::{
    SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed, SignedRequest,
    UnsignedRequest, only_value, signed_under_one_of,
};
use crate::provider::{Secret, SecretError, Secrets};

const ID: HeaderName = HeaderName::from_static("paypal-transmission-id");
const TIME: HeaderName = HeaderName::from_static("paypal-transmission-time");
const SIGNATURE: HeaderName = HeaderName::from_static("paypal-transmission-sig");
const ALGORITHM: HeaderName = HeaderName::from_static("paypal-auth-algo");
const CERTIFICATE: HeaderName = HeaderName::from_static("paypal-cert-url");
const RSA_SHA256: &str = "SHA256withRSA";
pub(super) const RSA: SignatureAlgorithm = SignatureAlgorithm::RsaSha256;

#[derive(Debug)]
pub(super) struct PayPal;

/// The values in the headers of a request.
struct Head<'a> {
    id: &'a str,
    time: &'a str,
    #[cfg(feature = "x509")]
    certificate: &'a str,
    signature: Vec<u8>,
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        if only_value(headers, &ALGORITHM)? != RSA_SHA256 {
            return Err(SignatureError::MalformedHeader(ALGORITHM));
        }
        let certificate = only_value(headers, &CERTIFICATE)?;
        if !is_https_at(certificate, is_of_paypal) {
            return Err(SignatureError::MalformedHeader(CERTIFICATE));
        }
        let part = |name: HeaderName| -> Result<&'a str, SignatureError> {
            let text = only_value(headers, &name)?;
            // A `|` in a value would move the borders between the signed parts.
            match text.contains('|') {
                true => Err(SignatureError::MalformedHeader(name)),
                false => Ok(text),
            }
        };
        Ok(Self {
            id: part(ID)?,
            time: part(TIME)?,
            #[cfg(feature = "x509")]
            certificate,
            signature: BASE64
                .decode(only_value(headers, &SIGNATURE)?)
                .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))?,
        })
    }
}

fn is_of_paypal(host: &str, path: &str) -> bool {
    let is_known = ["api.paypal.com", "api.sandbox.paypal.com"].contains(&host);
    let name = path.strip_prefix("/v1/notifications/certs/CERT-");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    is_known && name.is_some_and(|name| !name.is_empty() && name.chars().all(is_plain))
}

/// Whether the content is signed with the webhook's given key, or with the key of the certificate that the request
/// names.
fn is_signed(
    webhook: &PayPalWebhook,
    request: &SignedRequest<'_>,
    head: &Head<'_>,
    content: &str,
) -> Result<bool, SignatureError> {
    let Some(key) = &webhook.public_key else {
        return is_signed_with_certificate(request, head, content);
    };
    let key = RSA.key_of(key.expose());
    let key = key.ok_or(SignatureError::UnusableSecret)?;
    Ok(key.verify(RSA, content.as_bytes(), &head.signature))
}

/// Whether the content is signed with the key of the certificate that the request names. PayPal serves the certificate
/// without its issuers, so the certificate's address vouches for it.
#[cfg(feature = "x509")]
fn is_signed_with_certificate(
    request: &SignedRequest<'_>,
    head: &Head<'_>,
    content: &str,
) -> Result<bool, SignatureError> {
    let at = KeyRequest::get(head.certificate.to_owned()).one_key();
    let keys = request.keys(&at, None)?;
    let time = TimeFormat::Rfc3339
        .parse(head.time)
        .ok_or(SignatureError::MalformedHeader(TIME))?;
    let certificate = keys.certificates().first();
    let certificate =
        certificate.ok_or(SignatureError::Certificate(CertificateError::Malformed))?;
    certificate.check(time, |name| {
        name.starts_with("messageverificationcerts.") && name.ends_with(".paypal.com")
    })?;
    let key = certificate.key();
    let key = key.ok_or(SignatureError::Certificate(CertificateError::Malformed))?;
    match key.verify(RSA, content.as_bytes(), &head.signature) {
        true => Ok(true),
        false => Err(request.no_match_of_key_at(&at)),
    }
}

#[cfg(not(feature = "x509"))]
fn is_signed_with_certificate(
    _: &SignedRequest<'_>,
    _: &Head<'_>,
    _: &str,
) -> Result<bool, SignatureError> {
    Err(SignatureError::UnusableSecret)
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
        signed_under_one_of(request, secrets, |secret| {
            let webhook: PayPalWebhook =
                secret.parse().map_err(|_| SignatureError::UnusableSecret)?;
            let content = content(head.id, head.time, &webhook.id, request.body());
            is_signed(&webhook, request, &head, &content)
        })?;
        Ok(Signed::new())
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "RSA PKCS #1, SHA-256, of a CRC-32 of the body".into()
    }

    fn needs_keys(&self, secrets: &Secrets) -> bool {
        let mut webhooks = secrets.iter().filter_map(|secret| secret.parse().ok());
        webhooks.any(|webhook: PayPalWebhook| webhook.public_key.is_none())
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        let webhook: PayPalWebhook = secret.parse()?;
        match webhook.public_key.is_some() || cfg!(feature = "x509") {
            true => Ok(()),
            false => Err(SecretError::new(
                "PayPal needs `<webhook id>:<public key in PEM>`, or with the feature `x509` the webhook id \
                 alone",
            )),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        const TRANSMISSION: &str = "00000000-0000-0000-0000-000000000000";
        const URL: &str = "https://api.paypal.com/v1/notifications/certs/CERT-test";
        let webhook: PayPalWebhook = secret.parse()?;
        let time = TimeFormat::Rfc3339.format(request.time());
        let content = content(TRANSMISSION, &time, &webhook.id, request.body());
        let given = webhook.public_key.and_then(|key| RSA.key_of(key.expose()));
        let fetched = request.signing_key().map(|(_, key)| key);
        let key = given.as_ref().or(fetched);
        let signature = key
            .and_then(|key| key.sign(RSA, content.as_bytes()))
            .ok_or(SignError::new("the key in the secret is not a private key"))?;
        request.insert_header(ID, TRANSMISSION)?;
        request.insert_header(TIME, time)?;
        request.insert_header(CERTIFICATE, URL)?;
        request.insert_header(ALGORITHM, RSA_SHA256)?;
        request.insert_header(SIGNATURE, BASE64.encode(signature))
    }
}

/// The CRC-32 from ISO 3309, as in zlib.
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
            assert!(is_https_at(right, is_of_paypal), "{right}");
        }
        for wrong in [
            "",
            "api.paypal.com",
            "http://api.paypal.com/v1/notifications/certs/CERT-1",
            "https://www.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.paypal.com/v1/notifications/certs/../x",
            "https://api.paypal.com/v1/notifications/certs/CERT-1?x",
            "https://api.paypal.com/v1/other",
            "https://evilpaypal.com/",
            "https://paypal.com.evil.example/",
            "https://evil.example/.paypal.com",
            "https://evil.example#.paypal.com",
            "https://.paypal.com@evil.example/",
            "https://api.paypal.com:8443/v1/notifications/certs/CERT-1",
        ] {
            assert!(!is_https_at(wrong, is_of_paypal), "{wrong}");
        }
    }
}
