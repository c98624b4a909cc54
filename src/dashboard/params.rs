//! The parameters of pages and forms, and links that contain parameters.

use std::fmt;

use form_urlencoded::Serializer;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::PageError;
use super::html::Timestamp;

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Parses the parameters of a query and of a form. Values with NUL are refused, because Postgres cannot store NUL.
    pub(super) fn parse(query: &str, form: &[u8]) -> Result<Self, PageError> {
        let pairs = |encoded| form_urlencoded::parse(encoded).into_owned();
        let all: Vec<_> = pairs(query.as_bytes()).chain(pairs(form)).collect();
        if all.iter().any(|(_, value)| value.contains('\0')) {
            return Err(PageError::bad_request("Names and ids cannot contain NUL."));
        }
        Ok(Self(all))
    }

    /// Parses the parameters of a query and of a JSON object. The object contains strings, numbers, lists of strings,
    /// and in `keys` a list of objects that are delivery keys.
    pub(super) fn parse_json(query: &str, json: &[u8]) -> Result<Self, PageError> {
        const INVALID: PageError = PageError::bad_request(
            "The body must be a JSON object of strings, numbers, lists of strings, and `keys`.",
        );
        let Ok(Value::Object(object)) = serde_json::from_slice(json) else {
            return Err(INVALID);
        };
        let mut pairs = Serializer::new(query.to_owned());
        for (name, value) in &object {
            match value {
                Value::Array(values) => {
                    for value in values {
                        let (name, value) = match value {
                            Value::Object(key) => ("key", query_of(key)),
                            value => (&**name, text(value)),
                        };
                        pairs.append_pair(name, &value.ok_or(INVALID)?);
                    }
                }
                Value::Null => {}
                value => {
                    pairs.append_pair(name, &text(value).ok_or(INVALID)?);
                }
            }
        }
        Self::parse(&pairs.finish(), b"")
    }

    /// The first value with this name that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let first = self
            .0
            .iter()
            .find(|(known, value)| known == name && !value.is_empty());
        first.map(|(_, value)| value.as_str())
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// A time in Unix seconds. The parameter may also have the format that [`time`](Self::time) accepts.
    pub(super) fn seconds(&self, name: &str) -> Option<f64> {
        let text = self.get(name)?;
        let time = || Timestamp::parse(text).map(|Timestamp(seconds)| seconds);
        let seconds = text.parse().ok().or_else(time)?;
        // Within the range of Postgres timestamps.
        (0.0..1e11).contains(&seconds).then_some(seconds)
    }

    /// A time from a form or a program, in UTC: `2026-11-23T05:00`, with or without seconds.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, PageError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let time = Timestamp::parse(text);
        time.map(Some).ok_or(PageError::bad_request(
            "A time must be in UTC, such as 2026-11-23T05:00.",
        ))
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn query_of(object: &Map<String, Value>) -> Option<String> {
    let mut query = Serializer::new(String::new());
    for (name, value) in object {
        query.append_pair(name, &text(value)?);
    }
    Some(query.finish())
}

/// A link to a page of the dashboard. It is relative, so that it works under any prefix.
#[derive(Clone)]
pub(super) struct Link {
    page: &'static str,
    query: Vec<(&'static str, String)>,
}

impl Link {
    pub(super) fn to(page: &'static str) -> Self {
        Self {
            page,
            query: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Adds the parameter, unless the value is `None`.
    pub(super) fn with_some(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The parameters, without the page.
    pub(super) fn query(&self) -> String {
        let mut encoded = Serializer::new(String::new());
        encoded.extend_pairs(self.query.iter());
        encoded.finish()
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.page)?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query())?;
        }
        Ok(())
    }
}

/// A link is serialized as a string.
impl Serialize for Link {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl maud::Render for Link {
    fn render_to(&self, buffer: &mut String) {
        self.to_string().render_to(buffer);
    }
}
