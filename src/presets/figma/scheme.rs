//! Figma's passcode in the body.

use std::borrow::Cow;

use serde_json::Value;

use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::signature::token::one_of;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

/// The member with the passcode.
const PASSCODE: &str = "passcode";

#[derive(Debug)]
pub(super) struct Figma {
    passcode: Reader,
}

impl Figma {
    pub(super) fn new() -> Self {
        Self {
            passcode: Reader::new([&JsonPath::member(PASSCODE)]),
        }
    }
}

impl SignatureScheme for Figma {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let found = self.passcode.read(request.body()).ok();
        let Some(Match::Text(passcode)) = found.and_then(|mut found| found.pop()) else {
            return Err(SignatureError::MalformedBody);
        };
        let signed = one_of(secrets, passcode.as_bytes())?;
        let event: Value =
            serde_json::from_slice(request.body()).map_err(|_| SignatureError::MalformedBody)?;
        // A passcode that consists of digits must not be sent as a JSON number.
        if !event.get(PASSCODE).is_some_and(Value::is_string) {
            return Err(SignatureError::MalformedBody);
        }
        Ok(signed)
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "token in the body".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let passcode = std::str::from_utf8(secret.expose())
            .map_err(|_| SignError::new("the passcode is not UTF-8"))?;
        let mut body: Value = serde_json::from_slice(request.body())
            .map_err(|_| SignError::new("the body is not JSON"))?;
        let Some(members) = body.as_object_mut() else {
            return Err(SignError::new("the body is not a JSON object"));
        };
        members.insert(PASSCODE.into(), passcode.into());
        request.set_body(body.to_string());
        Ok(())
    }
}
