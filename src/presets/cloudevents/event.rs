//! The id of an event, in each of the specification's modes.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::provider::digest::sha256_hex;
use crate::provider::signature::Signed;

pub(in crate::presets) const ID: &str = "event";
pub(in crate::presets) const TYPE: &str = "type";

/// The longest delivery id.
const MAX_ID: usize = 255;

/// The values of an event or of a batch. They have no id if the event has none.
pub(in crate::presets) fn values(headers: &HeaderMap, body: &[u8]) -> Signed {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if content_type.starts_with("application/cloudevents-batch") {
        return Signed::new().value(ID, sha256_hex(body));
    }
    if !content_type.starts_with("application/cloudevents") {
        return of_parts(header("ce-source"), header("ce-id"), header("ce-type"));
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(event) => of_event(&event, "source", "type"),
        Err(_) => Signed::new(),
    }
}

/// The values of a JSON event. `source` and `kind` are the names of the members that contain the
/// source and the type.
pub(in crate::presets) fn of_event(event: &Value, source: &str, kind: &str) -> Signed {
    let text = |name| event.get(name).and_then(Value::as_str);
    of_parts(text(source), text("id"), text(kind))
}

fn of_parts(source: Option<&str>, id: Option<&str>, kind: Option<&str>) -> Signed {
    let is_there = |part: &&str| !part.trim().is_empty();
    let mut signed = Signed::new();
    if let Some((source, id)) = source.filter(is_there).zip(id.filter(is_there)) {
        // The length separates pairs of source and id that would otherwise give the same text.
        let key = format!("{}:{source} {id}", source.len());
        signed = match key.len() {
            ..=MAX_ID => signed.value(ID, key),
            _ => signed.value(ID, sha256_hex(key.as_bytes())),
        };
    }
    match kind {
        Some(kind) => signed.value(TYPE, kind),
        None => signed,
    }
}
