//! Documenso's secret in a header, and a digest of the event.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;
use serde_json::Value;

use crate::provider::signature::keyed::sha256;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, Token, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

/// The name of the digest that identifies an event.
pub(super) const EVENT: &str = "event";

/// The member with the time of the attempt.
const TIME: &str = "createdAt";

#[derive(Debug)]
pub(super) struct Documenso {
    token: Token,
}

impl Documenso {
    pub(super) fn new() -> Self {
        Self {
            token: Token::header(HeaderName::from_static("x-documenso-secret")),
        }
    }
}

impl SignatureScheme for Documenso {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.token.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signed = self.token.verify(request, secrets)?;
        let event: Value =
            serde_json::from_slice(request.body()).map_err(|_| SignatureError::MalformedBody)?;
        Ok(signed.value(EVENT, event_digest(event)))
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        self.token.description()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        self.token.sign(request, secret)
    }
}

/// A digest of the body that is the same for all attempts.
fn event_digest(mut event: Value) -> String {
    if let Some(members) = event.as_object_mut() {
        members.remove(TIME);
    }
    // In one order of the members, whether or not `serde_json` keeps theirs.
    event.sort_all_objects();
    hex::encode(sha256([event.to_string().as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_of_the_attempt_is_left_out_of_the_digest() {
        let of = |body: &str| serde_json::from_str(body).map(event_digest).ok();
        let first =
            of(r#"{"event":"DOCUMENT_SENT","payload":{"id":1,"createdAt":"a"},"createdAt":"t"}"#);
        assert!(first.is_some());
        let retry =
            r#"{"createdAt":"u","event":"DOCUMENT_SENT","payload":{"createdAt":"a","id":1}}"#;
        assert_eq!(of(retry), first);
        for other in [
            r#"{"event":"DOCUMENT_SENT","payload":{"id":1,"createdAt":"b"},"createdAt":"t"}"#,
            r#"{"event":"DOCUMENT_OPENED","payload":{"id":1,"createdAt":"a"},"createdAt":"t"}"#,
        ] {
            assert_ne!(of(other), first, "{other}");
        }
    }
}
