//! The secret of Event Grid, in the query or in a header.

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::presets::cloudevents::event;
use crate::provider::digest::sha256_hex;
use crate::provider::signature::form::query_values;
use crate::provider::signature::token::{one_of, one_value};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

/// The query parameter with the secret.
const TOKEN: &str = "code";

#[derive(Debug)]
pub(super) struct EventGrid;

impl SignatureScheme for EventGrid {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let mut codes = query_values(request.path_and_query(), TOKEN);
        match (codes.next(), codes.next()) {
            (Some(code), None) => one_of(secrets, code.as_bytes())?,
            (Some(_), Some(_)) => return Err(SignatureError::NoMatch),
            (None, _) => one_of(secrets, one_value(request.headers(), &AUTHORIZATION)?)?,
        };
        let body = request.body();
        Ok(match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(events)) => match events.as_slice() {
                [one] if one.get("specversion").is_none() => {
                    event::of_event(one, "topic", "eventType")
                }
                [one] => event::of_event(one, "source", "type"),
                [] => Signed::new(),
                _ => Signed::new().value(event::ID, sha256_hex(body)),
            },
            Ok(_) | Err(_) => event::values(request.headers(), body),
        })
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

    /// A body that is not an event is sent as the data of an event.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        request.insert_header(AUTHORIZATION, secret.expose())?;
        let body: Value = serde_json::from_slice(request.body())
            .map_err(|_| SignError::new("the body is not JSON"))?;
        if !body.is_array() && body.get("specversion").is_none() {
            let id = sha256_hex(request.body());
            let event = json!([{"topic": "/test", "id": id, "eventType": "test", "data": body}]);
            request.set_body(event.to_string());
        }
        Ok(())
    }
}
