//! Mandrill's signature of the URL and the sorted form.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderName;
use http::request::Parts;

use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::form::{Field, sorted_fields};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-mandrill-signature");

#[derive(Debug)]
pub(super) struct Mandrill;

impl SignatureScheme for Mandrill {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        signature(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signature = signature(request.headers())?;
        let url = request.url()?;
        let fields = sorted_fields(request.body()).ok_or(SignatureError::MalformedBody)?;
        let matches = |secret: &Secret| is_same(&mac(secret, &url, &fields), &signature);
        if secrets.iter().any(matches) {
            Ok(Signed::new())
        } else {
            Err(SignatureError::NoMatch)
        }
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let url = request.url()?;
        let fields = sorted_fields(request.body()).ok_or(SignatureError::MalformedBody)?;
        Ok(Some(content(&url, &fields).concat()))
    }

    fn signs_body_bytes(&self) -> bool {
        false
    }

    fn signs_url(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA1 in base64, of the URL and the form".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let fields =
            sorted_fields(request.body()).ok_or(SignError::new("the form has too many fields"))?;
        let mac = mac(secret, &request.url()?, &fields);
        request.insert_header(SIGNATURE, BASE64.encode(mac))
    }
}

fn signature(headers: &http::HeaderMap) -> Result<Vec<u8>, SignatureError> {
    BASE64
        .decode(only_value(headers, &SIGNATURE)?)
        .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))
}

fn mac(secret: &Secret, url: &str, fields: &[Field]) -> Vec<u8> {
    hmac(Hash::Sha1, secret.expose(), content(url, fields))
}

fn content<'a>(url: &'a str, fields: &'a [Field]) -> Vec<&'a [u8]> {
    let fields = fields
        .iter()
        .flat_map(|(name, value)| [name.as_slice(), value.as_slice()]);
    std::iter::once(url.as_bytes()).chain(fields).collect()
}
