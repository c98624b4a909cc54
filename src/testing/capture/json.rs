//! One value of a JSON document, with its members in their original order and its numbers as they are written.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::CaptureError;

pub(super) enum Value<'a> {
    /// `true`, `false` or `null`.
    Literal(&'a str),
    Number(&'a str),
    Text(String),
    Array(Vec<&'a RawValue>),
    Object(Vec<(String, &'a RawValue)>),
}

/// Reads a value, but not the values inside it.
pub(super) fn read(json: &str) -> Result<Value<'_>, CaptureError> {
    let unreadable = |_| CaptureError::new("its JSON cannot be read");
    let raw: &RawValue = serde_json::from_str(json).map_err(unreadable)?;
    let json = raw.get();
    Ok(match json.as_bytes().first() {
        Some(b'{') => Value::Object(members(json).map_err(unreadable)?),
        Some(b'[') => Value::Array(serde_json::from_str(json).map_err(unreadable)?),
        Some(b'"') => Value::Text(serde_json::from_str(json).map_err(unreadable)?),
        Some(b't' | b'f' | b'n') => Value::Literal(json),
        _ => Value::Number(json),
    })
}

fn members(json: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    struct Members;

    impl<'a> Visitor<'a> for Members {
        type Value = Vec<(String, &'a RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.deserialize_map(Members)
}
