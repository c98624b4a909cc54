//! Mailgun's signature of a time and a token, which is in the body.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::form::{encode, fields, only_field};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

const NAMES: [&str; 3] = ["timestamp", "token", "signature"];

#[derive(Debug)]
pub(super) struct Mailgun {
    reader: Reader,
}

impl Mailgun {
    pub(super) fn new() -> Self {
        Self {
            reader: Reader::new(&NAMES.map(|name| JsonPath::member("signature").then(name))),
        }
    }

    /// The time, the token and the signature, from JSON or from a form.
    fn read(&self, body: &[u8]) -> Option<[String; 3]> {
        let Ok(found) = self.reader.read(body) else {
            let fields = fields(body)?;
            let text = |name| String::from_utf8(only_field(&fields, name)?.to_vec()).ok();
            let [timestamp, token, signature] = NAMES.map(text);
            return Some([timestamp?, token?, signature?]);
        };
        let texts = found.into_iter().map(|found| match found {
            Match::Text(text) => Some(text),
            Match::Nothing | Match::Boolean(_) | Match::Null | Match::Other => None,
        });
        texts.collect::<Option<Vec<_>>>()?.try_into().ok()
    }
}

impl SignatureScheme for Mailgun {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let [timestamp, token, signature] = &self
            .read(request.body())
            .ok_or(SignatureError::MalformedBody)?;
        let signed_at =
            unix_time(timestamp, TimeUnit::Seconds).ok_or(SignatureError::MalformedBody)?;
        // Compared as text, so that only lower-case digits match.
        let matches = |secret: &Secret| {
            let mac = mac(secret, timestamp, token);
            is_same(mac.as_bytes(), signature.as_bytes())
        };
        if secrets.iter().any(matches) {
            Ok(Signed::new().at(signed_at))
        } else {
            Err(SignatureError::NoMatch)
        }
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in hex, in the body, of a time and a token".into()
    }

    /// A body that is not JSON is treated as a form. If the body already has a token, it stays.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let timestamp = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        let body = match serde_json::from_slice(request.body()) {
            Ok(Value::Object(members)) => signed_json(members, &timestamp, secret),
            Ok(_) => return Err(SignError::new("the body is not a JSON object")),
            Err(_) if request.body().trim_ascii_start().starts_with(b"{") => {
                return Err(SignError::new("the body is not JSON"));
            }
            Err(_) => signed_form(request.body(), &timestamp, secret)
                .ok_or(SignError::new("the form has too many fields"))?,
        };
        request.set_body(body);
        Ok(())
    }
}

const TOKEN: &str = "00000000000000000000000000000000000000000000000000";

fn signed_json(mut members: Map<String, Value>, timestamp: &str, secret: &Secret) -> String {
    let token = members
        .get("signature")
        .and_then(|signature| signature.get("token")?.as_str())
        .unwrap_or(TOKEN);
    let signature = mac(secret, timestamp, token);
    let signature = json!({"timestamp": timestamp, "token": token, "signature": signature});
    members.insert("signature".into(), signature);
    Value::from(members).to_string()
}

/// The signed form. `None` if it has too many fields.
fn signed_form(body: &[u8], timestamp: &str, secret: &Secret) -> Option<String> {
    let mut fields = fields(body)?;
    let token = only_field(&fields, "token").and_then(|token| std::str::from_utf8(token).ok());
    let token = token.unwrap_or(TOKEN).to_owned();
    let signature = mac(secret, timestamp, &token);
    fields.retain(|(name, _)| !NAMES.iter().any(|signed| name == signed.as_bytes()));
    let signed = NAMES.iter().zip([timestamp, &token, &signature]);
    let signed = signed.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let fields = fields.iter().map(|(name, value)| (&**name, &**value));
    let pairs = fields.chain(signed).map(|(name, value)| {
        let encoded = |text| encode(text, "-_.");
        format!("{}={}", encoded(name), encoded(value))
    });
    Some(pairs.collect::<Vec<_>>().join("&"))
}

fn mac(secret: &Secret, timestamp: &str, token: &str) -> String {
    let parts = [timestamp.as_bytes(), token.as_bytes()];
    hex::encode(hmac(Hash::Sha256, secret.expose(), parts))
}
