//! Singular JSON paths, read in one pass without building a document.
//!
//! A [`Reader`] holds the paths as a tree of members and elements. Reading walks the
//! document along that tree and skips the rest, so that memory does not grow with
//! the document; the whole of it is checked to be JSON all the same.

use std::fmt;
use std::str::FromStr;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

/// A singular query of [RFC 9535](https://www.rfc-editor.org/rfc/rfc9535): it names
/// at most one place in a document.
///
/// `$.id`, `$.data.object.id`, `$.events[0].id` and `$['event-id']` are such paths.
/// Negative indices, which the RFC allows, are refused: they cannot be read in one
/// pass.
///
/// ```
/// use idempotent_webhook::JsonPath;
///
/// let path: JsonPath = "$.data.object.id".parse()?;
/// assert!("$..id".parse::<JsonPath>().is_err());
/// # Ok::<(), idempotent_webhook::JsonPathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonPath {
    text: Box<str>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(Box<str>),
    Element(usize),
}

/// A text is not a singular JSON path.
#[derive(Clone, Debug)]
pub struct JsonPathError {
    position: usize,
    expected: &'static str,
}

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not a singular JSON path: {} expected at byte {}",
            self.expected, self.position
        )
    }
}

impl std::error::Error for JsonPathError {}

impl JsonPath {
    /// The path to a member of the top-level object, for names known to be plain.
    pub(crate) fn member(name: &str) -> Self {
        Self {
            text: format!("$.{name}").into(),
            steps: vec![Step::Member(name.into())],
        }
    }

    /// The path to a member of the object at this path, for names known to be plain.
    pub(crate) fn then(mut self, name: &str) -> Self {
        self.text = format!("{}.{name}", self.text).into();
        self.steps.push(Step::Member(name.into()));
        self
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parser = Parser { text, position: 0 };
        if !parser.eat('$') {
            return Err(parser.expected("$"));
        }
        let mut steps = Vec::new();
        loop {
            let before_blanks = parser.position;
            parser.skip_blanks();
            if parser.eat('.') {
                steps.push(Step::Member(parser.shorthand()?));
            } else if parser.eat('[') {
                parser.skip_blanks();
                steps.push(parser.selector()?);
                parser.skip_blanks();
                if !parser.eat(']') {
                    return Err(parser.expected("]"));
                }
            } else if parser.rest().is_empty() && parser.position == before_blanks {
                break;
            } else {
                return Err(parser.expected(". or ["));
            }
        }
        if steps.is_empty() {
            return Err(parser.expected(". or ["));
        }
        Ok(Self {
            text: text.into(),
            steps,
        })
    }
}

/// A cursor over the text of a path. The methods are named after the rules of
/// RFC 9535, section 2.
struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or("")
    }

    fn expected(&self, expected: &'static str) -> JsonPathError {
        JsonPathError {
            position: self.position,
            expected,
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.position += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.position += wanted.len_utf8();
        }
        found
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.position += end;
        rest.get(..end).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    /// `member-name-shorthand`
    fn shorthand(&mut self) -> Result<Box<str>, JsonPathError> {
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.expected("a member name"));
        }
        let name = self.take_while(|c| c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii());
        if name.is_empty() {
            return Err(self.expected("a member name"));
        }
        Ok(name.into())
    }

    /// `name-selector` or `index-selector`
    fn selector(&mut self) -> Result<Step, JsonPathError> {
        for quote in ['\'', '"'] {
            if self.eat(quote) {
                return Ok(Step::Member(self.string_literal(quote)?));
            }
        }
        let start = self.position;
        let digits = self.take_while(|c| c.is_ascii_digit());
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        match digits.parse() {
            Ok(index) if !leading_zero => Ok(Step::Element(index)),
            _ => {
                self.position = start;
                Err(self.expected("a quoted name or an index"))
            }
        }
    }

    fn string_literal(&mut self, quote: char) -> Result<Box<str>, JsonPathError> {
        let mut name = String::new();
        loop {
            let start = self.position;
            let c = match self.next() {
                Some(c) if c == quote => return Ok(name.into()),
                Some('\\') => self.escaped(quote),
                Some(c) if c >= ' ' => Some(c),
                _ => None,
            };
            let Some(c) = c else {
                self.position = start;
                return Err(self.expected("the rest of a quoted name"));
            };
            name.push(c);
        }
    }

    fn escaped(&mut self, quote: char) -> Option<char> {
        Some(match self.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '/' => '/',
            '\\' => '\\',
            'u' => match self.four_hex_digits()? {
                high @ 0xd800..=0xdbff => {
                    if !(self.eat('\\') && self.eat('u')) {
                        return None;
                    }
                    let low = self.four_hex_digits()?;
                    char::decode_utf16([high, low]).next()?.ok()?
                }
                unit => char::from_u32(unit.into())?,
            },
            c if c == quote => c,
            _ => return None,
        })
    }

    fn four_hex_digits(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.position += 4;
        u16::from_str_radix(digits, 16).ok()
    }
}

/// What stands at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: the path leads nowhere in this document.
    Nothing,
    /// A string, unescaped, or an integer, digit by digit as it was written.
    Text(String),
    /// Anything else: an object, an array, `true`, `null`, a number that is not
    /// written as an integer, or a string that no Unicode text can hold.
    Other,
}

/// Why a document could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    NotJson(serde_json::Error),
    NotUtf8(std::str::Utf8Error),
    /// A member on the way of a path is there twice. Which of the two counts differs
    /// between parsers, so the handler might see another value than we do.
    Ambiguous,
}

/// Several paths that are read together, in one pass.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// The tree; the first node is the document itself.
    nodes: Vec<Node>,
    paths: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(Step, usize)>,
    /// The paths that end here.
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
    pub(crate) fn read(&self, document: &[u8]) -> Result<Vec<Found>, ReadError> {
        // Checked on its own because serde_json does not check what it skips.
        let text = std::str::from_utf8(document).map_err(ReadError::NotUtf8)?;
        let mut state = State {
            reader: self,
            found: vec![Found::Nothing; self.paths],
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
            Ok(()) => Ok(state.found),
            Err(error) => Err(ReadError::NotJson(error)),
        }
    }
}

struct State<'r> {
    reader: &'r Reader,
    found: Vec<Found>,
    visited: Vec<bool>,
    ambiguous: bool,
}

impl<'r> State<'r> {
    fn node(&self, index: usize) -> Option<&'r Node> {
        self.reader.nodes.get(index)
    }

    fn store(&mut self, node: &Node, value: &Found) {
        for end in &node.ends {
            if let Some(slot) = self.found.get_mut(*end) {
                slot.clone_from(value);
            }
        }
    }
}

/// Reads the value that stands at a node.
struct Walk<'s, 'r> {
    state: &'s mut State<'r>,
    node: usize,
}

impl Walk<'_, '_> {
    /// Reads what stands at a child, which a document can name only once.
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
        if node.children.is_empty() {
            let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
            self.state.store(node, &classify(raw.get()));
            Ok(())
        } else {
            self.state.store(node, &Found::Other);
            deserializer.deserialize_any(self)
        }
    }
}

fn classify(json: &str) -> Found {
    if json.starts_with('"') {
        return serde_json::from_str(json).map_or(Found::Other, Found::Text);
    }
    let digits = json.strip_prefix('-').unwrap_or(json);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Found::Text(json.to_owned())
    } else {
        Found::Other
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

    // A scalar where a path goes on: the path leads nowhere.

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

/// Reads a member's name as the child of a node that it leads to, if any.
struct MemberOf<'r>(&'r Node);

impl<'de> DeserializeSeed<'de> for MemberOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.children.iter().find_map(|(step, child)| match step {
            Step::Member(wanted) if **wanted == *name => Some(*child),
            Step::Member(_) | Step::Element(_) => None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    fn read(path: &str, document: &str) -> Result<Found, Box<dyn std::error::Error>> {
        let path: JsonPath = path.parse()?;
        let found = Reader::new([&path]).read(document.as_bytes());
        match found {
            Ok(mut found) => Ok(found.remove(0)),
            Err(error) => Err(format!("{error:?}").into()),
        }
    }

    fn text(text: &str) -> Found {
        Found::Text(text.into())
    }

    #[test]
    fn paths_follow_rfc_9535() -> TestResult {
        let member = |name: &str| Step::Member(name.into());
        let cases: [(&str, Vec<Step>); 12] = [
            ("$.id", vec![member("id")]),
            ("$._a1", vec![member("_a1")]),
            ("$.ключ", vec![member("ключ")]),
            ("$.a.b", vec![member("a"), member("b")]),
            ("$['event-id']", vec![member("event-id")]),
            ("$[\"it's\"]", vec![member("it's")]),
            (r"$['it\'s']", vec![member("it's")]),
            (r"$['\u0041\uD83D\uDE00\n\/\\']", vec![member("A😀\n/\\")]),
            ("$['']", vec![member("")]),
            ("$.a[0].b", vec![member("a"), Step::Element(0), member("b")]),
            ("$[10]", vec![Step::Element(10)]),
            ("$ [ 'a' ] .b", vec![member("a"), member("b")]),
        ];
        for (path, steps) in cases {
            assert_eq!(path.parse::<JsonPath>()?.steps, steps, "{path}");
        }
        Ok(())
    }

    #[test]
    fn what_is_not_a_singular_path_is_refused() {
        for path in [
            "",
            "id",
            "$",
            "$.",
            "$.*",
            "$..id",
            "$.event-id",
            "$.1a",
            "$. id",
            "$[",
            "$[]",
            "$[*]",
            "$[-1]",
            "$[01]",
            "$[0:1]",
            "$[0,1]",
            "$[?@.a]",
            "$['a",
            "$['a'",
            r"$['\x']",
            r"$['\uD800']",
            r"$['\uDC00']",
            r#"$['\"']"#,
            "$['\n']",
            "$.id ",
            " $.id",
            "$[99999999999999999999999]",
        ] {
            assert!(path.parse::<JsonPath>().is_err(), "{path:?}");
        }
    }

    #[test]
    fn strings_and_integers_are_text() -> TestResult {
        for (document, expected) in [
            (r#"{"id":"evt_1"}"#, text("evt_1")),
            (r#"{"id":"\u0065\ud83d\ude00"}"#, text("e😀")),
            (r#"{"\u0069d":"escaped name"}"#, text("escaped name")),
            (r#"{"id":820982911946154508}"#, text("820982911946154508")),
            (
                r#"{"id": 123456789012345678901234567890 }"#,
                text("123456789012345678901234567890"),
            ),
            (r#"{"id":-7}"#, text("-7")),
            (r#"{"id":""}"#, text("")),
            (r#"{"id":1.5}"#, Found::Other),
            (r#"{"id":1e3}"#, Found::Other),
            (r#"{"id":true}"#, Found::Other),
            (r#"{"id":null}"#, Found::Other),
            (r#"{"id":{"id":1}}"#, Found::Other),
            (r#"{"id":["a"]}"#, Found::Other),
            (r#"{"id":"\ud800"}"#, Found::Other),
            (r#"{"other":1}"#, Found::Nothing),
            (r#"{"ID":1}"#, Found::Nothing),
            ("[]", Found::Nothing),
            ("null", Found::Nothing),
            ("1.5", Found::Nothing),
            ("-1", Found::Nothing),
            ("1", Found::Nothing),
            ("true", Found::Nothing),
            (r#""id""#, Found::Nothing),
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
        assert_eq!(read("$.a[2]", document)?, Found::Nothing);
        assert_eq!(read("$.a.b", document)?, Found::Nothing);
        assert_eq!(read("$[0]", document)?, Found::Nothing);
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
                Found::Other,
                text("t")
            ])
        );
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
            "\u{feff}{\"id\":1}",
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
        assert_eq!(read("$.id", &format!(r#"{{"id":{deep}}}"#))?, Found::Other);
        Ok(())
    }
}
