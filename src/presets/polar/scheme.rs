//! Polar's signature, under one of two possible keys.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderName;
use http::request::Parts;

use super::super::standard_webhooks::ID;
use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedContent, SignedRequest,
    UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

/// Decodes like a browser's `atob`, as Polar's SDK does, because Polar's own secrets have no
/// padding.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug)]
pub(super) struct Polar(Hmac);

impl Polar {
    pub(super) fn new() -> Self {
        let content = SignedContent::new()
            .id()
            .text(".")
            .timestamp()
            .text(".")
            .body();
        let scheme = Hmac::base64(HeaderName::from_static("webhook-signature"))
            .prefix("v1,")
            .separator(" ")
            .id_header(ID)
            .timestamp_header(HeaderName::from_static("webhook-timestamp"))
            .signed(content);
        Self(scheme)
    }
}

/// The key that the specification derives from a secret, if the secret can be decoded.
fn standard_key(secret: &Secret) -> Option<Secret> {
    let secret = secret.expose();
    let text = secret.strip_prefix(b"whsec_").unwrap_or(secret);
    Secret::new(LENIENT_BASE64.decode(text).ok()?).ok()
}

impl SignatureScheme for Polar {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.0.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let as_text = self.0.verify(request, secrets);
        if !matches!(as_text, Err(SignatureError::NoMatch)) {
            return as_text;
        }
        let mut keys = secrets.iter().filter_map(standard_key);
        let verified = keys.find_map(|key| self.0.verify(request, &key.into()).ok());
        verified.ok_or(SignatureError::NoMatch)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        self.0.signed_headers()
    }

    fn signs_time(&self) -> bool {
        self.0.signs_time()
    }

    fn description(&self) -> Cow<'static, str> {
        self.0.description()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.0.check_secret(secret)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        self.0.sign(request, secret)
    }
}
