//! The client state in each notification of a batch.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::provider::json_path::read_elements;
use crate::provider::signature::token::one_of;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

#[derive(Debug)]
pub(super) struct Graph;

impl SignatureScheme for Graph {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        const MALFORMED: SignatureError = SignatureError::MalformedBody;
        let mut known = Ok(Signed::new());
        let count = read_elements(request.body(), "value", "clientState", |state| {
            known = state
                .ok_or(MALFORMED)
                .and_then(|state| one_of(secrets, state.as_bytes()));
            known.is_ok()
        });
        match count {
            Ok(Some(0)) | Err(_) => Err(MALFORMED),
            Ok(Some(_) | None) => known,
        }
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "token in the body".into()
    }

    /// A body without notifications is wrapped as a notification.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let state = String::from_utf8_lossy(secret.expose()).into_owned();
        let mut body: Value = serde_json::from_slice(request.body())
            .map_err(|_| SignError::new("the body is not JSON"))?;
        if body.get("value").is_none() {
            body = json!({"value": [body]});
        }
        let notifications = body.get_mut("value").and_then(Value::as_array_mut);
        for notification in notifications.into_iter().flatten() {
            let members = notification
                .as_object_mut()
                .ok_or(SignError::new("a notification is not a JSON object"))?;
            members.insert("clientState".to_owned(), state.clone().into());
        }
        request.set_body(body.to_string());
        Ok(())
    }
}
