//! Maxio's signature of a form.

use std::borrow::Cow;

use http::HeaderName;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;

use crate::provider::signature::form::{fields, only_field};
use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The field with the id of the webhook.
pub(super) const ID: &str = "id";
/// The field with the event type.
pub(super) const EVENT: &str = "event";

#[derive(Debug)]
pub(super) struct Maxio {
    hmac: Hmac,
}

impl Maxio {
    pub(super) fn new() -> Self {
        let header = HeaderName::from_static("x-chargify-webhook-signature-hmac-sha-256");
        Self {
            hmac: Hmac::hex(header),
        }
    }
}

impl SignatureScheme for Maxio {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.hmac.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let mut signed = self.hmac.verify(request, secrets)?;
        let fields = fields(request.body()).ok_or(SignatureError::MalformedBody)?;
        for name in [ID, EVENT] {
            let value = only_field(&fields, name).and_then(|value| std::str::from_utf8(value).ok());
            if let Some(value) = value {
                signed = signed.value(name, value);
            }
        }
        Ok(signed)
    }

    fn description(&self) -> Cow<'static, str> {
        self.hmac.description()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.hmac.check_secret(secret)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let has_id = |body| fields(body).is_some_and(|fields| only_field(&fields, ID).is_some());
        if !has_id(request.body()) {
            request.set_body("id=1&event=test");
        }
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.insert_header(CONTENT_TYPE, form)?;
        self.hmac.sign(request, secret)
    }
}
