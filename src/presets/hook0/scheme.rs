//! Hook0's signature, which names the headers that it covers.

use std::borrow::Cow;
use std::time::SystemTime;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::provider::digest::sha256_hex;
use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, is_uuid,
    only_value,
};
use crate::provider::{Secret, Secrets};

/// The name of the value that identifies the event.
pub(in crate::presets) const EVENT: &str = "event";
/// The name of the value with the event type.
pub(in crate::presets) const TYPE: &str = "type";

const SIGNATURE: HeaderName = HeaderName::from_static("x-hook0-signature");
const EVENT_ID: HeaderName = HeaderName::from_static("x-event-id");
const EVENT_TYPE: HeaderName = HeaderName::from_static("x-event-type");

/// The maximum number of covered headers; Hook0 sends fewer.
const MAX_HEADERS: usize = 64;

#[derive(Debug)]
pub(super) struct Hook0;

/// The signature header.
struct Head<'a> {
    time: &'a str,
    signed_at: SystemTime,
    /// The names of the covered headers, as written in the signature header.
    names: &'a str,
    mac: Vec<u8>,
}

impl<'a> Head<'a> {
    fn of(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        let text = only_value(headers, &SIGNATURE)?;
        let head = Self::parse(text).ok_or(SignatureError::MalformedHeader(SIGNATURE))?;
        head.values(headers)?;
        Ok(head)
    }

    /// Parses the signature header. `None` if a field is repeated, because it would be unclear which value counts.
    fn parse(text: &'a str) -> Option<Self> {
        let only = |prefix| {
            let mut found = text
                .split(',')
                .filter_map(|field| field.strip_prefix(prefix));
            found.next().filter(|_| found.next().is_none())
        };
        let time = only("t=")?;
        Some(Self {
            time,
            signed_at: unix_time(time, TimeUnit::Seconds)?,
            names: only("h=")?,
            mac: hex::decode(only("v1=")?).ok()?,
        })
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.split(' ').filter(|name| !name.is_empty())
    }

    fn covers(&self, header: &HeaderName) -> bool {
        self.names().any(|name| name == header.as_str())
    }

    /// The values of the covered headers, with full stops between them.
    fn values(&self, headers: &HeaderMap) -> Result<String, SignatureError> {
        if self.names().count() > MAX_HEADERS {
            return Err(SignatureError::MalformedHeader(SIGNATURE));
        }
        let values = self.names().map(|name| {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))?;
            only_value(headers, &name)
        });
        Ok(values.collect::<Result<Vec<_>, _>>()?.join("."))
    }

    /// The value of a header that is covered.
    fn covered(
        &self,
        headers: &'a HeaderMap,
        name: &HeaderName,
    ) -> Result<Option<&'a str>, SignatureError> {
        match self.covers(name) {
            true => only_value(headers, name).map(Some),
            false => Ok(None),
        }
    }
}

fn content<'a>(time: &'a str, names: &'a str, values: &'a str, body: &'a [u8]) -> [&'a [u8]; 7] {
    let [time, names, values] = [time, names, values].map(str::as_bytes);
    [time, b".", names, b".", values, b".", body]
}

impl SignatureScheme for Hook0 {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::of(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let headers = request.headers();
        let head = Head::of(headers)?;
        let values = head.values(headers)?;
        let content = content(head.time, head.names, &values, request.body());
        let has_signed =
            |secret: &Secret| is_same(&hmac(Hash::Sha256, secret.expose(), content), &head.mac);
        if !secrets.iter().any(has_signed) {
            return Err(SignatureError::NoMatch);
        }
        let event = match head.covered(headers, &EVENT_ID)? {
            // The signature does not cover where a value ends and the next one starts. If the id could be any
            // text, part of the event type could become part of the id.
            Some(id) if is_uuid(id) => id.to_owned(),
            Some(_) => return Err(SignatureError::MalformedHeader(EVENT_ID)),
            None => sha256_hex(request.body()),
        };
        let mut signed = Signed::new().at(head.signed_at).value(EVENT, event);
        if let Some(event_type) = head.covered(headers, &EVENT_TYPE)? {
            signed = signed.value(TYPE, event_type);
        }
        Ok(signed)
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        format!("HMAC-SHA256 in hex, of named headers and the body, `{SIGNATURE}`").into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        for (name, value) in [
            (EVENT_ID, "01234567-89ab-4cde-8f01-23456789abcd"),
            (EVENT_TYPE, "test.event.created"),
        ] {
            if !request.headers().contains_key(&name) {
                request.insert_header(name, value)?;
            }
        }
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        let names = format!("{EVENT_ID} {EVENT_TYPE}");
        let value = |name| {
            only_value(request.headers(), &name)
                .map_err(|_| SignError::new("a header that is signed is not text"))
        };
        let values = format!("{}.{}", value(EVENT_ID)?, value(EVENT_TYPE)?);
        let content = content(&time, &names, &values, request.body());
        let mac = hex::encode(hmac(Hash::Sha256, secret.expose(), content));
        request.insert_header(SIGNATURE, format!("t={time},h={names},v1={mac}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_is_an_event_id() {
        assert!(is_uuid("01234567-89ab-4CDE-8f01-23456789abcd"));
        for text in [
            "",
            "transfers",
            "0123456789ab4cde8f0123456789abcd",
            "01234567-89ab-4cde-8f01-23456789abcg",
            "01234567-89ab-4cde-8f01-23456789abcd0",
            "01234567-89ab-4cde-8f01.23456789abcd",
        ] {
            assert!(!is_uuid(text), "{text}");
        }
    }

    #[test]
    fn a_head_has_each_field_once() {
        for text in [
            "",
            "t=1,v1=00",
            "t=1,h=a",
            "h=a,v1=00",
            "t=1,v0=00",
            "t=1,t=2,h=a,v1=00",
            "t=1,h=a,h=b,v1=00",
            "t=1,h=a,v1=00,v1=01",
            "t=x,h=a,v1=00",
            "t=1,h=a,v1=0",
        ] {
            assert!(Head::parse(text).is_none(), "{text}");
        }
        let head = Head::parse("t=1,v0=ff,h=a b,v1=00");
        let names = head.map(|head| head.names().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(names, Some(vec!["a".to_owned(), "b".to_owned()]));
    }
}
