//! Ko-fi's token, in a form field that contains JSON.

use std::borrow::Cow;

use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::signature::form::{fields, form, only_field};
use crate::provider::signature::token::one_of;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

pub(super) const ID: &str = "message_id";
pub(super) const TYPE: &str = "type";
const TOKEN: &str = "verification_token";
const FIELD: &str = "data";

#[derive(Debug)]
pub(super) struct Kofi {
    reader: Reader,
}

impl Kofi {
    pub(super) fn new() -> Self {
        Self {
            reader: Reader::new(&[TOKEN, ID, TYPE].map(JsonPath::member)),
        }
    }
}

impl SignatureScheme for Kofi {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let fields = fields(request.body()).ok_or(SignatureError::MalformedBody)?;
        let data = only_field(&fields, FIELD).ok_or(SignatureError::MalformedBody)?;
        let found = self.reader.read(data);
        let mut found = found
            .map_err(|_| SignatureError::MalformedBody)?
            .into_iter();
        let mut next = || match found.next() {
            Some(Match::Text(text)) => Some(text),
            Some(Match::Nothing | Match::Boolean(_) | Match::Null | Match::Other) | None => None,
        };
        let token = next().ok_or(SignatureError::MalformedBody)?;
        let mut signed = one_of(secrets, token.as_bytes())?;
        for name in [ID, TYPE] {
            if let Some(value) = next() {
                signed = signed.value(name, value);
            }
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
        let token = std::str::from_utf8(secret.expose())
            .map_err(|_| SignError::new("the token is not UTF-8"))?;
        let fields = fields(request.body()).unwrap_or_default();
        let data = only_field(&fields, FIELD).unwrap_or(request.body());
        let mut data: Value = serde_json::from_slice(data)
            .map_err(|_| SignError::new("the body is not the JSON that goes into the form"))?;
        let Some(members) = data.as_object_mut() else {
            return Err(SignError::new("the body is not a JSON object"));
        };
        members.insert(TOKEN.into(), token.into());
        members.entry(ID).or_insert(json!("delivery-1"));
        members.entry(TYPE).or_insert(json!("Donation"));
        request.set_body(form(FIELD, data.to_string().as_bytes()));
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.insert_header(CONTENT_TYPE, content_type)
    }
}
