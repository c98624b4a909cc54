//! The token of CloudEvents webhooks, in a header or in the query.

use std::borrow::Cow;

use http::header::{AUTHORIZATION, HeaderName};
use serde_json::Value;

use super::event;
use crate::provider::digest::sha256_hex;
use crate::provider::signature::form::query_values;
use crate::provider::signature::token::{one_of, one_value};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

/// The query parameter with the token.
const TOKEN: &str = "access_token";

#[derive(Debug)]
pub(super) struct CloudEvents;

impl SignatureScheme for CloudEvents {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let mut presented = query_values(request.path_and_query(), TOKEN);
        if let Some(token) = presented.next() {
            if presented.next().is_some() {
                return Err(SignatureError::NoMatch);
            }
            one_of(secrets, token.as_bytes())?;
        } else {
            let value = one_value(request.headers(), &AUTHORIZATION)?;
            let token = value.split_at_checked("Bearer ".len());
            let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
            let (_, token) = token.ok_or(SignatureError::MalformedHeader(AUTHORIZATION))?;
            one_of(secrets, token)?;
        }
        Ok(event::values(request.headers(), request.body()))
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn secret_parameters(&self) -> &'static [&'static str] {
        &[TOKEN]
    }

    fn description(&self) -> Cow<'static, str> {
        "token".into()
    }

    /// An event in structured mode is left as it is. Any other body is sent as the data of an
    /// event.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let token = [b"Bearer ", secret.expose()].concat();
        request.insert_header(AUTHORIZATION, token)?;
        let is_event = |body: &Value| body.get("specversion").is_some();
        let body = serde_json::from_slice(request.body()).ok();
        if request.headers().contains_key("ce-id") || body.as_ref().is_some_and(is_event) {
            return Ok(());
        }
        let id = sha256_hex(request.body());
        for (name, value) in [
            ("ce-specversion", "1.0"),
            ("ce-id", &id),
            ("ce-source", "/test"),
            ("ce-type", "test"),
        ] {
            request.insert_header(HeaderName::from_static(name), value)?;
        }
        Ok(())
    }
}
