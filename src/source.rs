//! Where in a request the delivery id and the event type are.

use std::borrow::Cow;
use std::fmt;

use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use crate::crypto::sha256_hex;
use crate::json_path::{Found, JsonPath, ReadError, Reader};

/// The longest usable value in bytes.
const MAX_LEN: usize = 255;

/// Where in a request a delivery id or an event type is found.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::Source;
///
/// let by_header = Source::header(HeaderName::from_static("x-acme-delivery"));
/// let by_path = Source::json("$.data.object.id".parse()?).and(Source::json("$.type".parse()?));
/// # Ok::<(), idempotent_webhook::JsonPathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Source(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Header(HeaderName),
    Json(JsonPath),
    BodyDigest,
    First(Vec<Source>),
    All(Vec<Source>),
}

impl Source {
    /// The value of a header, in visible ASCII. A header that is there twice is not
    /// usable.
    pub fn header(name: HeaderName) -> Self {
        Self(Kind::Header(name))
    }

    /// A string or an integer in the JSON body. The whole body must then be valid
    /// JSON.
    pub fn json(path: JsonPath) -> Self {
        Self(Kind::Json(path))
    }

    /// The SHA-256 of the raw body, for providers that send no id.
    ///
    /// Two events whose bodies are the same to the byte are then one delivery: make
    /// sure that the body holds a time or a number that sets them apart.
    pub fn body_digest() -> Self {
        Self(Kind::BodyDigest)
    }

    /// This source or, where it has nothing at all, the other one. A value that is there but
    /// not usable is refused, not skipped.
    ///
    /// A value of a plain source never equals one of several parts ([`and`](Self::and)).
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self.0 {
            Kind::First(mut sources) => {
                sources.push(other);
                Self(Kind::First(sources))
            }
            _ => Self(Kind::First(vec![self, other])),
        }
    }

    /// Both sources together. Each part is preceded by its length, so that `a` and
    /// `bc` never collide with `ab` and `c`; each must be there and be usable.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self.0 {
            Kind::All(mut sources) => {
                sources.push(other);
                Self(Kind::All(sources))
            }
            _ => Self(Kind::All(vec![self, other])),
        }
    }

    /// Whether whoever forged the value would also have to forge the signature, which
    /// covers the body and `signed_headers`.
    pub(crate) fn is_signed(&self, signed_headers: &[HeaderName]) -> bool {
        match &self.0 {
            Kind::Header(name) => signed_headers.contains(name),
            Kind::Json(_) | Kind::BodyDigest => true,
            // One forged part is enough for a fresh id.
            Kind::First(sources) | Kind::All(sources) => sources
                .iter()
                .all(|source| source.is_signed(signed_headers)),
        }
    }

    /// Whether its values have parts.
    fn is_composite(&self) -> bool {
        match &self.0 {
            Kind::All(_) => true,
            Kind::First(sources) => sources.iter().any(Self::is_composite),
            Kind::Header(_) | Kind::Json(_) | Kind::BodyDigest => false,
        }
    }

    fn json_paths(&self) -> Vec<&JsonPath> {
        match &self.0 {
            Kind::Json(path) => vec![path],
            Kind::Header(_) | Kind::BodyDigest => Vec::new(),
            Kind::First(sources) | Kind::All(sources) => {
                sources.iter().flat_map(Self::json_paths).collect()
            }
        }
    }

    /// Reads the value. Takes the results of its JSON paths from `found`, in the
    /// order of [`json_paths`](Self::json_paths).
    fn read(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        found: &mut impl Iterator<Item = Found>,
    ) -> Result<Option<String>, Fault> {
        match &self.0 {
            Kind::Header(name) => read_header(headers, name),
            Kind::Json(_) => match found.next() {
                None | Some(Found::Nothing) => Ok(None),
                Some(Found::Text(text)) => usable(text).map(Some),
                Some(Found::Other) => Err(Fault::WrongType),
            },
            Kind::BodyDigest => Ok(Some(sha256_hex(body))),
            Kind::First(sources) => {
                let composite = sources.iter().any(Self::is_composite);
                let mut first = Ok(None);
                for source in sources {
                    // Read even when settled, to take its share of `found`.
                    let value = source.read(headers, body, found);
                    if matches!(first, Ok(None)) {
                        first = match value {
                            Ok(Some(plain)) if composite && !source.is_composite() => {
                                usable(set_apart(plain)).map(Some)
                            }
                            value => value,
                        };
                    }
                }
                first
            }
            Kind::All(sources) => {
                let mut joined = Ok(Some(String::new()));
                for source in sources {
                    let part = source.read(headers, body, found);
                    joined = match (joined, part) {
                        (Ok(Some(joined)), Ok(Some(part))) => Ok(Some(joined + &delimited(&part))),
                        (Err(fault), _) | (Ok(_), Err(fault)) => Err(fault),
                        (Ok(_), Ok(_)) => Ok(None),
                    };
                }
                joined?.map(usable).transpose()
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, sources: &[Self], word: &str| {
            for (i, source) in sources.iter().enumerate() {
                if i > 0 {
                    f.write_str(word)?;
                }
                write!(f, "{source}")?;
            }
            Ok(())
        };
        match &self.0 {
            Kind::Header(name) => write!(f, "header {name}"),
            Kind::Json(path) => write!(f, "{path}"),
            Kind::BodyDigest => f.write_str("body digest"),
            Kind::First(sources) => join(f, sources, " or "),
            Kind::All(sources) => join(f, sources, " and "),
        }
    }
}

/// Why a value that is there cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// In a header, but not in visible ASCII.
    NotVisibleAscii,
    /// In a header that is there more than once.
    Repeated,
    /// In JSON, but neither a string nor an integer.
    WrongType,
    Blank,
    TooLong,
    /// Control characters, among them NUL, which Postgres cannot store in a text.
    ControlCharacter,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotVisibleAscii => "not visible ASCII",
            Self::Repeated => "there more than once",
            Self::WrongType => "neither a string nor an integer",
            Self::Blank => "blank",
            Self::TooLong => "longer than 255 bytes",
            Self::ControlCharacter => "not free of control characters",
        })
    }
}

/// A part of a composite.
fn delimited(part: &str) -> String {
    format!("{}:{part}", part.len())
}

/// A plain value that no composite can be taken for: if it looks like one, it is made one of a
/// single part, as no `and` makes.
fn set_apart(plain: String) -> String {
    if is_delimited(&plain) {
        delimited(&plain)
    } else {
        plain
    }
}

/// Whether a value consists of delimited parts.
fn is_delimited(mut value: &str) -> bool {
    while !value.is_empty() {
        let rest = value
            .split_once(':')
            .and_then(|(length, rest)| rest.get(length.parse().ok()?..));
        match rest {
            Some(rest) => value = rest,
            None => return false,
        }
    }
    true
}

fn read_header(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Fault::Repeated);
    }
    match value.to_str() {
        Ok(text) if text.trim().is_empty() => Err(Fault::Blank),
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            usable(text.to_owned()).map(Some)
        }
        _ => Err(Fault::NotVisibleAscii),
    }
}

/// Whether a text may be part of a key.
pub(crate) fn is_usable(text: &str) -> bool {
    check(text).is_ok()
}

fn usable(text: String) -> Result<String, Fault> {
    check(&text).map(|()| text)
}

fn check(text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        Err(Fault::Blank)
    } else if text.len() > MAX_LEN {
        Err(Fault::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(Fault::ControlCharacter)
    } else {
        Ok(())
    }
}

/// Where the delivery id and the event type of a provider's requests are.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    id: Source,
    event_type: Option<Source>,
    /// The event type that is no event but a handshake, and where its challenge is.
    handshake: Option<(Cow<'static, str>, Source)>,
    /// Reads the JSON paths of all of them, in that order.
    reader: Reader,
}

/// What an authentic request is.
pub(crate) enum Identified {
    Delivery {
        id: String,
        event_type: Option<String>,
    },
    Handshake {
        event_type: String,
        challenge: String,
    },
}

impl Identity {
    pub(crate) fn new(id: Source) -> Self {
        Self {
            reader: Reader::new(id.json_paths()),
            id,
            event_type: None,
            handshake: None,
        }
    }

    pub(crate) fn with_id(mut self, id: Source) -> Self {
        self.id = id;
        self.with_reader()
    }

    pub(crate) fn with_event_type(mut self, event_type: Source) -> Self {
        self.event_type = Some(event_type);
        self.with_reader()
    }

    pub(crate) fn with_handshake(mut self, event_type: Cow<'static, str>, of: Source) -> Self {
        self.handshake = Some((event_type, of));
        self.with_reader()
    }

    fn with_reader(mut self) -> Self {
        let challenge = self.handshake.as_ref().map(|(_, source)| source);
        let sources = [Some(&self.id), self.event_type.as_ref(), challenge];
        let paths = sources.into_iter().flatten().flat_map(Source::json_paths);
        self.reader = Reader::new(paths);
        self
    }

    pub(crate) fn id_is_signed(&self, signed_headers: &[HeaderName]) -> bool {
        self.id.is_signed(signed_headers)
    }

    /// The delivery id and, if the request has a usable one, the event type.
    ///
    /// The event type informs and is no part of the key, so nothing is refused for
    /// the want of it. What has no id, but the event type of the handshake, is one.
    pub(crate) fn read(&self, head: &Parts, body: &[u8]) -> Result<Identified, IdentityError> {
        let found = if self.reader.is_empty() {
            Vec::new()
        } else {
            match self.reader.read(body) {
                Ok(found) => found,
                Err(_) if self.id.json_paths().is_empty() => Vec::new(),
                Err(error) => return Err(IdentityError::of_body(error)),
            }
        };
        let mut found = found.into_iter();
        let mut read = |source: &Source| source.read(&head.headers, body, &mut found);
        let id = read(&self.id);
        let event_type = self
            .event_type
            .as_ref()
            .and_then(|source| read(source).ok()?);
        match (id, event_type, &self.handshake) {
            (Ok(Some(id)), event_type, _) => Ok(Identified::Delivery { id, event_type }),
            (Ok(None), Some(event_type), Some((handshake, challenge)))
                if event_type == *handshake =>
            {
                match read(challenge) {
                    Ok(Some(challenge)) => Ok(Identified::Handshake {
                        event_type,
                        challenge,
                    }),
                    Ok(None) => Err(IdentityError::of_challenge(challenge, "missing")),
                    Err(fault) => Err(IdentityError::of_challenge(challenge, fault)),
                }
            }
            (Ok(None), _, _) => Err(IdentityError::of_id(&self.id, "missing")),
            (Err(fault), _, _) => Err(IdentityError::of_id(&self.id, fault)),
        }
    }
}

/// An authentic request has no usable delivery id, so it could only be processed
/// without dedupe. It is refused instead.
///
/// The text names the place and the fault, never the value.
#[derive(Debug)]
pub struct IdentityError {
    text: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl IdentityError {
    fn of_id(id: &Source, fault: impl fmt::Display) -> Self {
        Self {
            text: format!("no usable delivery id: {id} is {fault}"),
            source: None,
        }
    }

    fn of_challenge(challenge: &Source, fault: impl fmt::Display) -> Self {
        Self {
            text: format!("no usable challenge: {challenge} is {fault}"),
            source: None,
        }
    }

    fn of_body(error: ReadError) -> Self {
        match error {
            ReadError::NotJson(error) => Self {
                text: "the body is not valid JSON".into(),
                source: Some(error.into()),
            },
            ReadError::NotUtf8(error) => Self {
                text: "the body is not valid JSON".into(),
                source: Some(error.into()),
            },
            ReadError::Ambiguous => Self {
                text: "no usable delivery id: a member is in the body twice".into(),
                source: None,
            },
        }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request};

    use super::*;

    const ID: HeaderName = HeaderName::from_static("x-id");
    const OTHER: HeaderName = HeaderName::from_static("x-other");

    fn head(headers: &[(HeaderName, &[u8])]) -> Result<Parts, http::Error> {
        let mut head = Request::new(()).into_parts().0;
        for (name, value) in headers {
            head.headers.append(name, HeaderValue::from_bytes(value)?);
        }
        Ok(head)
    }

    fn read(id: Source, headers: &[(HeaderName, &[u8])], body: &str) -> String {
        let Ok(head) = head(headers) else {
            return "not a header".into();
        };
        match Identity::new(id).read(&head, body.as_bytes()) {
            Ok(Identified::Delivery { id, .. }) => id,
            Ok(Identified::Handshake { .. }) => "a handshake".into(),
            Err(error) => format!("! {error}"),
        }
    }

    fn json(path: &str) -> Source {
        #[expect(clippy::unwrap_used, reason = "the tests name paths that parse")]
        Source::json(path.parse().unwrap())
    }

    #[test]
    fn g2_a_header_must_be_there_once_in_visible_ascii() {
        let by_header = |values: &[&[u8]]| {
            let headers = values.iter().map(|value| (ID, *value)).collect::<Vec<_>>();
            read(Source::header(ID), &headers, "not JSON")
        };
        let refused = |fault: &str| format!("! no usable delivery id: header x-id is {fault}");
        assert_eq!(by_header(&[b"72d3162e-cc78"]), "72d3162e-cc78");
        assert_eq!(by_header(&["~".repeat(255).as_bytes()]), "~".repeat(255));
        assert_eq!(by_header(&[]), refused("missing"));
        assert_eq!(by_header(&[b""]), refused("blank"));
        assert_eq!(by_header(&[b"  \t"]), refused("blank"));
        assert_eq!(by_header(&[b"a b"]), refused("not visible ASCII"));
        assert_eq!(by_header(&["é".as_bytes()]), refused("not visible ASCII"));
        assert_eq!(by_header(&[b"\xff"]), refused("not visible ASCII"));
        assert_eq!(by_header(&[b"a", b"a"]), refused("there more than once"));
        assert_eq!(
            by_header(&["~".repeat(256).as_bytes()]),
            refused("longer than 255 bytes")
        );
    }

    #[test]
    fn g2_a_json_id_must_be_a_string_or_an_integer_that_postgres_can_hold() {
        let by_path = |value: &str| read(json("$.id"), &[], &format!(r#"{{"id":{value}}}"#));
        let refused = |fault: &str| format!("! no usable delivery id: $.id is {fault}");
        let wrong_type = refused("neither a string nor an integer");
        assert_eq!(by_path(r#""evt_1""#), "evt_1");
        assert_eq!(by_path(r#""é 1""#), "é 1");
        assert_eq!(
            by_path("123456789012345678901234567890"),
            "123456789012345678901234567890"
        );
        for value in ["1.5", "true", "null", "{}", "[1]", r#""\ud800""#] {
            assert_eq!(by_path(value), wrong_type, "{value}");
        }
        for value in [r#""""#, r#""  ""#, r#""\u00a0""#] {
            assert_eq!(by_path(value), refused("blank"), "{value}");
        }
        for value in [r#""a\u0000""#, r#""a\nb""#, r#""a\u0085b""#] {
            assert_eq!(
                by_path(value),
                refused("not free of control characters"),
                "{value}"
            );
        }
        assert_eq!(
            by_path(&format!(r#""{}""#, "é".repeat(128))),
            refused("longer than 255 bytes")
        );
        assert_eq!(by_path("1,"), "! the body is not valid JSON");
        assert_eq!(
            by_path(r#"1,"id":1"#),
            "! no usable delivery id: a member is in the body twice"
        );
    }

    #[test]
    fn the_first_source_that_has_anything_counts() {
        let either = || {
            Source::header(ID)
                .or(Source::header(OTHER))
                .or(json("$.id"))
        };
        let body = r#"{"id":"c"}"#;
        assert_eq!(read(either(), &[(ID, b"a"), (OTHER, b"b")], body), "a");
        assert_eq!(read(either(), &[(OTHER, b"b")], body), "b");
        assert_eq!(read(either(), &[], body), "c");
        assert_eq!(
            read(either(), &[(ID, b""), (OTHER, b"b")], body),
            "! no usable delivery id: header x-id or header x-other or $.id is blank"
        );
        assert_eq!(
            read(either(), &[], "{}"),
            "! no usable delivery id: header x-id or header x-other or $.id is missing"
        );
    }

    #[test]
    fn g2_the_parts_of_a_composite_id_are_length_delimited() {
        let both = || json("$.a").and(json("$.b"));
        let of = |body: &str| read(both(), &[], body);
        assert_eq!(of(r#"{"b":"bc","a":"a"}"#), "1:a2:bc");
        assert_eq!(of(r#"{"a":"ab","b":"c"}"#), "2:ab1:c");
        assert_eq!(
            of(r#"{"a":"a"}"#),
            "! no usable delivery id: $.a and $.b is missing"
        );
        assert_eq!(
            of(r#"{"a":"","b":"b"}"#),
            "! no usable delivery id: $.a and $.b is blank"
        );
        assert_eq!(
            of(&format!(
                r#"{{"a":"{}","b":"{}"}}"#,
                "a".repeat(128),
                "b".repeat(128)
            )),
            "! no usable delivery id: $.a and $.b is longer than 255 bytes"
        );
    }

    #[test]
    fn nested_sources_take_their_own_json_values() {
        let nested = json("$.a")
            .or(json("$.b").and(json("$.c")))
            .and(json("$.d"));
        assert_eq!(
            read(nested.clone(), &[], r#"{"a":"1","b":"2","c":"3","d":"4"}"#),
            "1:11:4"
        );
        assert_eq!(
            read(nested, &[], r#"{"b":"2","c":"3","d":"4"}"#),
            "6:1:21:31:4"
        );
    }

    #[test]
    fn a_body_digest_is_the_sha_256() {
        assert_eq!(
            read(Source::body_digest(), &[], "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    /// The id, the event type and the challenge, as far as they are there.
    fn parts(
        identity: &Identity,
        head: &Parts,
        body: &str,
    ) -> Result<[Option<String>; 3], IdentityError> {
        Ok(match identity.read(head, body.as_bytes())? {
            Identified::Delivery { id, event_type } => [Some(id), event_type, None],
            Identified::Handshake {
                event_type,
                challenge,
            } => [None, Some(event_type), Some(challenge)],
        })
    }

    #[test]
    fn an_event_type_that_is_not_usable_is_none() -> Result<(), Box<dyn std::error::Error>> {
        let identity = Identity::new(Source::header(ID)).with_event_type(json("$.type"));
        let head = head(&[(ID, b"1")])?;
        for (body, expected) in [
            (r#"{"type":"invoice.paid"}"#, Some("invoice.paid")),
            (r#"{"type":null}"#, None),
            (r#"{"type":"\u0000"}"#, None),
            (r#"{"type":"a","type":"b"}"#, None),
            ("{}", None),
            ("", None),
            ("{", None),
        ] {
            let [_, event_type, _] = parts(&identity, &head, body)?;
            assert_eq!(event_type.as_deref(), expected, "{body}");
        }
        let identity = identity.with_id(json("$.id"));
        assert!(parts(&identity, &head, r#"{"id":1}"#).is_ok());
        assert!(parts(&identity, &head, r#"{"id":1"#).is_err());
        Ok(())
    }

    #[test]
    fn a_handshake_has_its_event_type_a_challenge_and_no_id() -> Result<(), http::Error> {
        let identity = Identity::new(json("$.id"))
            .with_event_type(json("$.type"))
            .with_handshake("hello".into(), json("$.challenge"));
        let head = head(&[])?;
        let of = |body: &str| match parts(&identity, &head, body) {
            Ok(parts) => parts.map(Option::unwrap_or_default).join("|"),
            Err(error) => format!("! {error}"),
        };
        assert_eq!(of(r#"{"type":"hello","challenge":"c"}"#), "|hello|c");
        assert_eq!(
            of(r#"{"type":"hello","challenge":"c","id":"a"}"#),
            "a|hello|"
        );
        assert_eq!(
            of(r#"{"type":"other","challenge":"c"}"#),
            "! no usable delivery id: $.id is missing"
        );
        assert_eq!(
            of(r#"{"type":"hello"}"#),
            "! no usable challenge: $.challenge is missing"
        );
        assert_eq!(
            of(r#"{"type":"hello","challenge":"c","id":""}"#),
            "! no usable delivery id: $.id is blank"
        );
        Ok(())
    }

    #[test]
    fn an_id_is_signed_where_forging_it_takes_the_secret() {
        let header = || Source::header(ID);
        assert!(json("$.id").is_signed(&[]));
        assert!(Source::body_digest().is_signed(&[]));
        assert!(!header().is_signed(&[]));
        assert!(header().is_signed(&[ID]));
        assert!(!header().or(json("$.id")).is_signed(&[]));
        assert!(!header().and(json("$.id")).is_signed(&[]));
        assert!(json("$.a").and(json("$.b")).is_signed(&[]));
    }
}
