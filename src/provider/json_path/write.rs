//! Writes a value at a path, for requests that are signed rather than verified.

use serde_json::{Map, Value};

use super::{JsonPath, Step};

impl JsonPath {
    /// Writes `value` at the path, creating objects and arrays on the way. Returns whether the
    /// document had a place for the value.
    pub(crate) fn write(&self, document: &mut Value, value: Value) -> bool {
        let mut place = document;
        for step in &self.steps {
            if place.is_null() {
                *place = match step {
                    Step::Member(_) => Value::Object(Map::new()),
                    Step::Element(_) => Value::Array(Vec::new()),
                };
            }
            place = match (place, step) {
                (Value::Object(members), Step::Member(name)) => {
                    members.entry(name.to_string()).or_insert(Value::Null)
                }
                // A larger index would leave holes in the array.
                (Value::Array(elements), Step::Element(index)) if *index <= elements.len() => {
                    if *index == elements.len() {
                        elements.push(Value::Null);
                    }
                    match elements.get_mut(*index) {
                        Some(element) => element,
                        None => return false,
                    }
                }
                _ => return false,
            };
        }
        *place = value;
        true
    }

    /// Whether the document has a value other than `null` at the path.
    #[cfg(feature = "testing")]
    pub(crate) fn is_in(&self, document: &Value) -> bool {
        let found = self
            .steps
            .iter()
            .try_fold(document, |place, step| match step {
                Step::Member(name) => place.get(&**name),
                Step::Element(index) => place.get(index),
            });
        found.is_some_and(|value| !value.is_null())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(path: &str, mut document: Value) -> Option<Value> {
        let path: JsonPath = path.parse().ok()?;
        path.write(&mut document, json!(1)).then_some(document)
    }

    #[test]
    fn a_value_is_written_where_the_path_names_it() {
        assert_eq!(
            written("$.a", json!({"b": 2})),
            Some(json!({"a": 1, "b": 2}))
        );
        assert_eq!(
            written("$.a.b", json!({"a": null})),
            Some(json!({"a": {"b": 1}}))
        );
        assert_eq!(
            written("$.a[0].b", json!({})),
            Some(json!({"a": [{"b": 1}]}))
        );
        assert_eq!(written("$[1]", json!([0])), Some(json!([0, 1])));
        assert_eq!(written("$[1]", json!([])), None);
        assert_eq!(written("$.a.b", json!({"a": "text"})), None);
        assert_eq!(written("$.a", json!([])), None);
    }
}
