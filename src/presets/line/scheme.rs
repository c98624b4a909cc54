//! LINE's signature of the body, and the ids of the events in it.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;
use serde_json::Value;

use crate::provider::signature::digests::sha256;
use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The name of the value that identifies the events in a body.
pub(super) const EVENTS: &str = "events";

#[derive(Debug)]
pub(super) struct Line(Hmac);

impl Line {
    pub(super) fn new() -> Self {
        Self(Hmac::base64(HeaderName::from_static("x-line-signature")))
    }
}

impl SignatureScheme for Line {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.0.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signed = self.0.verify(request, secrets)?;
        Ok(match events_id(request.body()) {
            Some(id) => signed.value(EVENTS, id),
            None => signed,
        })
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

/// An id that is the same for each redelivery of the same events. `None` if there are no events, or
/// if an event has no id.
fn events_id(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let ids: Option<Vec<&str>> = body
        .get("events")?
        .as_array()?
        .iter()
        .map(|event| event.get("webhookEventId")?.as_str())
        .collect();
    match ids?.as_slice() {
        [] => None,
        [id] => Some((*id).to_owned()),
        ids => Some(hex::encode(sha256([ids.join("\n").as_bytes()]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_identified_by_all_their_ids() {
        let of = |events: &str| events_id(format!(r#"{{"events":[{events}]}}"#).as_bytes());
        let (a, b) = (r#"{"webhookEventId":"a"}"#, r#"{"webhookEventId":"b"}"#);
        assert_eq!(of(a).as_deref(), Some("a"));
        let both = of(&format!("{a},{b}"));
        assert!(both.is_some());
        for other in [of(a), of(b), of(&format!("{b},{a}"))] {
            assert_ne!(other, both);
        }
        for none in ["", "{}", &format!("{a},{{}}"), r#"{"webhookEventId":1}"#] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(events_id(b"{}"), None);
        assert_eq!(events_id(b"not JSON"), None);
    }
}
