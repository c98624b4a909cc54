//! Reads one member of each element of a list, without building the document.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::ReadError;
use super::unescape::unescape;

/// Reads the texts at `$.{list}[*].{member}`, and passes each to `accept`. For an element without such a text, it
/// passes `None`. Stops at the first element that `accept` refuses. Returns the number of elements in the list, or
/// `None` if it stopped early.
///
/// Only one text is in memory at a time. The whole document is checked to be valid JSON, unless reading stops early.
pub(crate) fn read_elements(
    document: &[u8],
    list: &str,
    member: &str,
    mut accept: impl FnMut(Option<&str>) -> bool,
) -> Result<Option<usize>, ReadError> {
    // UTF-8 is checked separately, because serde_json does not check it in what it skips.
    let text = std::str::from_utf8(document).map_err(ReadError::NotUtf8)?;
    let mut elements = Elements {
        member,
        accept: &mut accept,
        count: 0,
        end: End::Whole,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walked = Document(list, &mut elements)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    match (elements.end, walked) {
        (End::Stopped, _) => Ok(None),
        (End::Ambiguous, _) => Err(ReadError::Ambiguous),
        (End::Whole, Ok(())) => Ok(Some(elements.count)),
        (End::Whole, Err(error)) => Err(ReadError::NotJson(error)),
    }
}

/// Why reading ended.
enum End {
    Whole,
    Stopped,
    /// A member occurs twice.
    Ambiguous,
}

struct Elements<'a> {
    member: &'a str,
    accept: &'a mut dyn FnMut(Option<&str>) -> bool,
    count: usize,
    end: End,
}

impl Elements<'_> {
    fn end<E: serde::de::Error>(&mut self, end: End) -> E {
        self.end = end;
        E::custom("the reader has ended")
    }
}

/// The document, and the name of the list in it.
struct Document<'s, 'a>(&'s str, &'s mut Elements<'a>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut is_found = false;
        while let Some(is_list) = map.next_key_seed(Named(self.0))? {
            match is_list {
                true if is_found => return Err(self.1.end(End::Ambiguous)),
                true => map.next_value_seed(List(&mut *self.1))?,
                false => map.next_value::<IgnoredAny>().map(drop)?,
            }
            is_found |= is_list;
        }
        Ok(())
    }
}

struct List<'s, 'a>(&'s mut Elements<'a>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Element(&mut *self.0))?.is_some() {
            self.0.count += 1;
        }
        Ok(())
    }
}

struct Element<'s, 'a>(&'s mut Elements<'a>);

impl<'de> DeserializeSeed<'de> for Element<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Element<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found: Option<&'de RawValue> = None;
        while let Some(is_wanted) = map.next_key_seed(Named(self.0.member))? {
            match is_wanted {
                true if found.is_some() => return Err(self.0.end(End::Ambiguous)),
                true => found = Some(map.next_value()?),
                false => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        let text = found.and_then(|raw| unescape(raw.get()));
        match (self.0.accept)(text.as_deref()) {
            true => Ok(()),
            false => Err(self.0.end(End::Stopped)),
        }
    }
}

/// Whether a member has this name.
struct Named<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that were read, and the result. `no` is not accepted.
    fn read(document: &str) -> (Vec<Option<String>>, Result<Option<usize>, ReadError>) {
        let mut texts = Vec::new();
        let found = read_elements(document.as_bytes(), "value", "state", |text| {
            texts.push(text.map(str::to_owned));
            text != Some("no")
        });
        (texts, found)
    }

    #[test]
    fn each_element_is_read() {
        let text = |text: &str| Some(text.to_owned());
        for (document, expected, count) in [
            (
                r#"{"a":[{"state":"no"}],"value":[{"state":"x","b":{"state":"no"}},{"st\u0061te":"\u0065"}]}"#,
                vec![text("x"), text("e")],
                2,
            ),
            (
                r#"{"value":[{},{"state":1},{"state":null},{"state":["a"]}]}"#,
                vec![None; 4],
                4,
            ),
            (r#"{"value":[]}"#, vec![], 0),
            (r#"{"other":[{"state":"x"}]}"#, vec![], 0),
        ] {
            let (texts, found) = read(document);
            assert_eq!(texts, expected, "{document}");
            assert!(matches!(found, Ok(Some(n)) if n == count), "{document}");
        }
    }

    #[test]
    fn it_stops_at_what_is_not_accepted() {
        let (texts, found) = read(r#"{"value":[{"state":"no"},{"state":"x"} and no JSON"#);
        assert_eq!(texts.len(), 1);
        assert!(matches!(found, Ok(None)));
    }

    #[test]
    fn what_is_there_twice_is_ambiguous() {
        for document in [
            r#"{"value":[{"state":"x"}],"value":[{"state":"x"}]}"#,
            r#"{"value":[{"state":"x","state":"x"}]}"#,
        ] {
            let (_, found) = read(document);
            assert!(matches!(found, Err(ReadError::Ambiguous)), "{document}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for document in [
            "",
            "[]",
            r#"{"value":{}}"#,
            r#"{"value":[1]}"#,
            r#"{"value":[[]]}"#,
            r#"{"value":[{"state":"x"}]"#,
            r#"{"value":[{"state":"x"}]}}"#,
            r#"{"value":[{"state":"x"}],"a":nul}"#,
        ] {
            let (_, found) = read(document);
            assert!(matches!(found, Err(ReadError::NotJson(_))), "{document}");
        }
        let found = read_elements(b"{\"a\":\"\xff\"}", "value", "state", |_| true);
        assert!(matches!(found, Err(ReadError::NotUtf8(_))));
    }
}
