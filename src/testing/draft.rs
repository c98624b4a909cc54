//! A draft of a request. The id and the event type are written where the provider puts them. A *source* of the preset
//! says where a value is, for example in a header or at a path in the JSON body.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use serde_json::Value;

use crate::provider::signature::Signed;
use crate::provider::{Identified, Identity, Kind, Source};

/// A request that is not complete yet.
pub(super) struct Draft {
    head: Parts,
    /// The body as the test gave it, unless something was written into it.
    body: Bytes,
    /// The body, if it is a JSON object.
    object: Option<Value>,
}

impl Draft {
    pub(super) fn new(head: Parts, body: Bytes) -> Self {
        let object = serde_json::from_slice(&body).ok().filter(Value::is_object);
        Self { head, body, object }
    }

    pub(super) fn into_parts(self) -> (Parts, Bytes) {
        (self.head, self.body)
    }

    pub(super) fn is_handshake(&self, identity: &Identity) -> bool {
        matches!(
            identity.read(&self.head, &self.body, &Signed::new()),
            Ok(Identified::Handshake(_))
        )
    }

    /// Writes a value to the first place where the source reads it. If an id is composed of several parts, the value is
    /// written to the first part, and missing parts are filled.
    pub(super) fn write(&mut self, source: &Source, value: &str) -> Result<(), String> {
        match source.kind() {
            Kind::Header(name) => set_header(&mut self.head.headers, name, value),
            Kind::Json(path) => {
                let Some(object) = &mut self.object else {
                    return Err(format!(
                        "{source} has no place: the body is not a JSON object"
                    ));
                };
                let before = object.clone();
                if !path.write(object, Value::from(value)) {
                    return Err(format!("{source} has no place in the body"));
                }
                if *object != before {
                    self.body = object.to_string().into();
                }
                Ok(())
            }
            Kind::BodyDigest | Kind::BodyDigestWithout(_) => {
                Err("it is identified by its body's digest: set a body".into())
            }
            Kind::Receipt => Err("each request is a delivery of its own: it has no id".into()),
            Kind::SignedTime => Err("it is identified by the time of signing: set a time".into()),
            Kind::SignedValue(name) => Err(format!(
                "{name} is part of the body: set a body that has it"
            )),
            Kind::First(sources) => match sources.first() {
                Some(first) => self.write(first, value),
                None => Ok(()),
            },
            Kind::All(sources) => {
                for (i, source) in sources.iter().enumerate() {
                    if i == 0 {
                        self.write(source, value)?;
                    } else {
                        self.fill(source, value)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes a value if the source would find none in the request. A body that is not a JSON object is not changed.
    pub(super) fn fill(&mut self, source: &Source, value: &str) -> Result<(), String> {
        match source.kind() {
            Kind::BodyDigest
            | Kind::BodyDigestWithout(_)
            | Kind::Receipt
            | Kind::SignedTime
            | Kind::SignedValue(_) => Ok(()),
            Kind::Json(_) if self.object.is_none() => Ok(()),
            Kind::Header(_) | Kind::Json(_) | Kind::First(_) if self.has(source) => Ok(()),
            Kind::Header(_) | Kind::Json(_) => self.write(source, value),
            Kind::First(sources) => match sources.first() {
                Some(first) => self.fill(first, value),
                None => Ok(()),
            },
            Kind::All(sources) => sources
                .iter()
                .try_for_each(|source| self.fill(source, value)),
        }
    }

    /// Like `fill`, but does not change the body.
    pub(super) fn fill_headers(&mut self, source: &Source, value: &str) -> Result<(), String> {
        match source.kind() {
            Kind::Header(_) => self.fill(source, value),
            Kind::Json(_)
            | Kind::BodyDigest
            | Kind::BodyDigestWithout(_)
            | Kind::Receipt
            | Kind::SignedTime
            | Kind::SignedValue(_) => Ok(()),
            Kind::First(_) if self.has(source) => Ok(()),
            Kind::First(sources) => match sources.first() {
                Some(first) => self.fill_headers(first, value),
                None => Ok(()),
            },
            Kind::All(sources) => sources
                .iter()
                .try_for_each(|source| self.fill_headers(source, value)),
        }
    }

    /// Whether the source would find a value in the request.
    fn has(&self, source: &Source) -> bool {
        match source.kind() {
            Kind::Header(name) => self.head.headers.contains_key(name),
            Kind::Json(path) => self
                .object
                .as_ref()
                .is_some_and(|object| path.is_in(object)),
            Kind::BodyDigest
            | Kind::BodyDigestWithout(_)
            | Kind::Receipt
            | Kind::SignedTime
            | Kind::SignedValue(_) => true,
            Kind::First(sources) => sources.iter().any(|source| self.has(source)),
            Kind::All(sources) => sources.iter().all(|source| self.has(source)),
        }
    }
}

fn set_header(headers: &mut HeaderMap, name: &HeaderName, value: &str) -> Result<(), String> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| format!("{value:?} cannot be in the header {name}"))?;
    headers.insert(name.clone(), value);
    Ok(())
}
