//! The client state in each notification of a batch.

use std::borrow::Cow;

use serde_json::{Value, json};

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
        let malformed = SignatureError::MalformedBody;
        let body: Value = serde_json::from_slice(request.body()).map_err(|_| malformed.clone())?;
        let notifications = body.get("value").and_then(Value::as_array);
        let notifications = notifications
            .filter(|all| !all.is_empty())
            .ok_or(malformed.clone())?;
        for notification in notifications {
            let state = notification.get("clientState").and_then(Value::as_str);
            one_of(secrets, state.ok_or(malformed.clone())?.as_bytes())?;
        }
        Ok(Signed::new())
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "token in the body".into()
    }

    /// A body without notifications becomes one.
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
