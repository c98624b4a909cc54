//! Reads values in one pass, without building a document.
//!
//! The reader walks along the paths and skips the rest, so its memory does not grow with the document. It still checks
//! that the whole document is valid JSON.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::unescape::unescape;
use super::{JsonPath, Step};

/// The value at a path in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// There is no such value.
    Nothing,
    /// A string, unescaped, or an integer, digit by digit as it was written.
    Text(String),
    Boolean(bool),
    /// `null`.
    Null,
    /// Anything else: an object, an array, a number that is not written as an
    /// integer, or a string that is not valid Unicode.
    Other,
}

/// Why a document could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    NotJson(serde_json::Error),
    NotUtf8(std::str::Utf8Error),
    /// A member on a path is repeated. Parsers differ in which of the two values they use, so the handler might
    /// read the other value.
    Ambiguous,
}

/// Reads several paths in one pass.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// A tree of members and elements. The first node is the document itself.
    nodes: Vec<Node>,
    paths: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(Step, usize)>,
    /// The paths that end at this node.
    ends: Vec<usize>,
}

impl Reader {
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a JsonPath>) -> Self {
        let mut reader = Self {
            nodes: vec![Node::default()],
            paths: 0,
        };
        for path in paths {
            let end = path
                .steps
                .iter()
                .fold(0, |node, step| reader.child(node, step));
            if let Some(node) = reader.nodes.get_mut(end) {
                node.ends.push(reader.paths);
            }
            reader.paths += 1;
        }
        reader
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths == 0
    }

    fn child(&mut self, parent: usize, step: &Step) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(parent) else {
            return parent;
        };
        if let Some((_, known)) = node.children.iter().find(|(known, _)| known == step) {
            return *known;
        }
        node.children.push((step.clone(), new));
        self.nodes.push(Node::default());
        new
    }

    /// Reads all paths, in the order in which they were given.
    pub(crate) fn read(&self, document: &[u8]) -> Result<Vec<Match>, ReadError> {
        // UTF-8 is checked separately, because serde_json does not check it in what it skips.
        let text = std::str::from_utf8(document).map_err(ReadError::NotUtf8)?;
        // RFC 8259 lets a reader skip a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut state = State {
            reader: self,
            matches: vec![Match::Nothing; self.paths],
            visited: vec![false; self.nodes.len()],
            ambiguous: false,
        };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let walked = Walk {
            state: &mut state,
            node: 0,
        }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
        match walked {
            _ if state.ambiguous => Err(ReadError::Ambiguous),
            Ok(()) => Ok(state.matches),
            Err(error) => Err(ReadError::NotJson(error)),
        }
    }
}

struct State<'r> {
    reader: &'r Reader,
    matches: Vec<Match>,
    visited: Vec<bool>,
    ambiguous: bool,
}

impl<'r> State<'r> {
    fn node(&self, index: usize) -> Option<&'r Node> {
        self.reader.nodes.get(index)
    }

    fn store(&mut self, node: &Node, value: &Match) {
        for end in &node.ends {
            if let Some(slot) = self.matches.get_mut(*end) {
                slot.clone_from(value);
            }
        }
    }
}

/// Reads the value at a node.
struct Walk<'s, 'r> {
    state: &'s mut State<'r>,
    node: usize,
}

impl Walk<'_, '_> {
    /// Reads the value at a child, which must not be repeated.
    fn descend<E: serde::de::Error>(
        &mut self,
        node: usize,
        read: impl FnOnce(Walk<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(visited) = self.state.visited.get_mut(node)
            && std::mem::replace(visited, true)
        {
            self.state.ambiguous = true;
            return Err(E::custom("a member is there twice"));
        }
        read(Walk {
            state: self.state,
            node,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Some(node) = self.state.node(self.node) else {
            return Err(D::Error::custom("no such node"));
        };
        if node.ends.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
        self.state.store(node, &classify(raw.get()));
        if node.children.is_empty() || !raw.get().starts_with(['{', '[']) {
            return Ok(());
        }
        // A longer path continues below this value, so read it again.
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        deserializer.deserialize_any(self).map_err(D::Error::custom)
    }
}

fn classify(json: &str) -> Match {
    if json.starts_with('"') {
        return unescape(json).map_or(Match::Other, Match::Text);
    }
    if let Ok(boolean) = json.trim().parse() {
        return Match::Boolean(boolean);
    }
    if json == "null" {
        return Match::Null;
    }
    let digits = json.strip_prefix('-').unwrap_or(json);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Match::Text(json.to_owned())
    } else {
        Match::Other
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let Some(node) = self.state.node(self.node) else {
            return Err(A::Error::custom("no such node"));
        };
        while let Some(child) = map.next_key_seed(MemberOf(node))? {
            match child {
                Some(child) => self.descend(child, |walk| map.next_value_seed(walk))?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let Some(node) = self.state.node(self.node) else {
            return Err(A::Error::custom("no such node"));
        };
        for index in 0.. {
            let child = node
                .children
                .iter()
                .find(|(step, _)| *step == Step::Element(index));
            let more = match child {
                Some((_, child)) => {
                    let mut more = false;
                    self.descend(*child, |walk| {
                        more = seq.next_element_seed(walk)?.is_some();
                        Ok(())
                    })?;
                    more
                }
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    // A scalar in the middle of a path: the path leads nowhere.

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a member's name, and finds the child node that it leads to, if any.
struct MemberOf<'r>(&'r Node);

impl<'de> DeserializeSeed<'de> for MemberOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // The name is not read as a Rust string, because JSON allows a lone surrogate, which is not valid Unicode.
        let name = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
        let name = unescape(name.get());
        Ok(self.0.children.iter().find_map(|(step, child)| match step {
            Step::Member(wanted) if Some(&**wanted) == name.as_deref() => Some(*child),
            Step::Member(_) | Step::Element(_) => None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    fn read(path: &str, document: &str) -> Result<Match, Box<dyn std::error::Error>> {
        let path: JsonPath = path.parse()?;
        let found = Reader::new([&path]).read(document.as_bytes());
        match found {
            Ok(mut found) => Ok(found.remove(0)),
            Err(error) => Err(format!("{error:?}").into()),
        }
    }

    fn text(text: &str) -> Match {
        Match::Text(text.into())
    }

    #[test]
    fn strings_and_integers_are_text() -> TestResult {
        for (document, expected) in [
            (r#"{"id":"evt_1"}"#, text("evt_1")),
            (r#"{"id":"\u0065\ud83d\ude00"}"#, text("e😀")),
            (r#"{"\u0069d":"escaped name"}"#, text("escaped name")),
            (r#"{"\ud800":{"id":1},"id":"after"}"#, text("after")),
            ("\u{feff}{\"id\":1}", text("1")),
            (r#"{"id":820982911946154508}"#, text("820982911946154508")),
            (
                r#"{"id": 123456789012345678901234567890 }"#,
                text("123456789012345678901234567890"),
            ),
            (r#"{"id":-7}"#, text("-7")),
            (r#"{"id":""}"#, text("")),
            (r#"{"id":1.5}"#, Match::Other),
            (r#"{"id":1e3}"#, Match::Other),
            (r#"{"id":true}"#, Match::Boolean(true)),
            (r#"{"id": false }"#, Match::Boolean(false)),
            (r#"{"id":null}"#, Match::Null),
            (r#"{"id":{"id":1}}"#, Match::Other),
            (r#"{"id":["a"]}"#, Match::Other),
            (r#"{"id":"\ud800"}"#, Match::Other),
            (r#"{"other":1}"#, Match::Nothing),
            (r#"{"ID":1}"#, Match::Nothing),
            ("[]", Match::Nothing),
            ("null", Match::Nothing),
            ("1.5", Match::Nothing),
            ("-1", Match::Nothing),
            ("1", Match::Nothing),
            ("true", Match::Nothing),
            (r#""id""#, Match::Nothing),
        ] {
            assert_eq!(read("$.id", document)?, expected, "{document}");
        }
        Ok(())
    }

    #[test]
    fn nested_places_are_found() -> TestResult {
        let document = r#" {"a":[{"b":1},{"b":[2,{"c":3}]}], "a-b":{"":4}} "#;
        assert_eq!(read("$.a[0].b", document)?, text("1"));
        assert_eq!(read("$.a[1].b[1].c", document)?, text("3"));
        assert_eq!(read("$['a-b']['']", document)?, text("4"));
        assert_eq!(read("$.a[2]", document)?, Match::Nothing);
        assert_eq!(read("$.a.b", document)?, Match::Nothing);
        assert_eq!(read("$[0]", document)?, Match::Nothing);
        Ok(())
    }

    #[test]
    fn several_paths_are_read_in_one_pass() -> TestResult {
        let paths = ["$.type", "$.data.id", "$.data.kind", "$.data", "$.type"]
            .into_iter()
            .map(str::parse)
            .collect::<Result<Vec<JsonPath>, _>>()?;
        let document = br#"{"data":{"kind":"k","id":7},"type":"t"}"#;
        let found = Reader::new(&paths).read(document);
        assert_eq!(
            found.ok(),
            Some(vec![
                text("t"),
                text("7"),
                text("k"),
                Match::Other,
                text("t")
            ])
        );
        Ok(())
    }

    #[test]
    fn a_path_that_another_one_goes_on_from_is_read() -> TestResult {
        let paths = ["$.a", "$.a.id"]
            .into_iter()
            .map(str::parse)
            .collect::<Result<Vec<JsonPath>, _>>()?;
        for (document, expected) in [
            (r#"{"a": "evt_1" }"#, [text("evt_1"), Match::Nothing]),
            (r#"{"a":7}"#, [text("7"), Match::Nothing]),
            (r#"{"a":{"id":7}}"#, [Match::Other, text("7")]),
            (r#"{"a":[7]}"#, [Match::Other, Match::Nothing]),
            (r#"{"a":"\ud800"}"#, [Match::Other, Match::Nothing]),
            (r#"{"a":1e999}"#, [Match::Other, Match::Nothing]),
        ] {
            let found = Reader::new(&paths).read(document.as_bytes());
            assert_eq!(found.ok(), Some(expected.to_vec()), "{document}");
        }
        let repeated = Reader::new(&paths).read(br#"{"a":{"id":1,"id":1}}"#);
        assert!(matches!(repeated, Err(ReadError::Ambiguous)));
        Ok(())
    }

    #[test]
    fn a_member_that_is_there_twice_is_ambiguous() -> TestResult {
        for document in [
            r#"{"a":{"id":1,"id":1}}"#,
            r#"{"a":{"id":1},"a":{}}"#,
            r#"{"a":1,"a":{"id":1}}"#,
        ] {
            let path: JsonPath = "$.a.id".parse()?;
            let found = Reader::new([&path]).read(document.as_bytes());
            assert!(matches!(found, Err(ReadError::Ambiguous)), "{document}");
        }
        assert_eq!(read("$.id", r#"{"b":1,"b":2,"id":3}"#)?, text("3"));
        Ok(())
    }

    #[test]
    fn the_whole_document_must_be_json() -> TestResult {
        for document in [
            "",
            " ",
            r#"{"id":1"#,
            r#"{"id":1}["#,
            r#"{"id":1}{"id":1}"#,
            r#"{"id":1,}"#,
            r#"{"id":1,"x":01}"#,
            r#"{"id":1,"x":"a	b"}"#,
            r#"{"id":1,"x":"\x"}"#,
            r#"{"id":1,"x":nul}"#,
            "{'id':1}",
            "\u{feff}\u{feff}{\"id\":1}",
            "{\"a\nb\":1,\"id\":1}",
        ] {
            assert!(read("$.id", document).is_err(), "{document:?}");
        }
        let path: JsonPath = "$.id".parse()?;
        let found = Reader::new([&path]).read(b"{\"id\":1,\"x\":\"\xff\"}");
        assert!(matches!(found, Err(ReadError::NotUtf8(_))));
        Ok(())
    }

    #[test]
    fn g14_depth_is_no_danger() -> TestResult {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(
            read("$.id", &format!(r#"{{"x":{deep},"id":1}}"#))?,
            text("1")
        );
        assert_eq!(read("$.id", &format!(r#"{{"id":{deep}}}"#))?, Match::Other);
        Ok(())
    }
}
