//! Which delivery an authentic request is: its id, its event type, or a handshake.

use std::fmt;

use http::request::Parts;

use super::handshake::{Handshake, HandshakeRule};
use super::json_path::{ReadError, Reader};
use super::signature::Signed;
use super::source::{Source, Spaces, Unreadable};
use crate::delivery::DeliveryId;

/// Where the delivery id, the event type and the challenge of a provider's requests are.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    id: Source,
    event_type: Option<Source>,
    /// What qualifies the event type.
    event_action: Option<Source>,
    handshake: Option<HandshakeRule>,
    /// Reads the JSON paths of all of them, in that order.
    reader: Reader,
}

/// What an authentic request turned out to be.
pub(crate) enum Identified {
    Delivery {
        id: DeliveryId,
        event_type: Option<String>,
    },
    Handshake(Handshake),
}

impl Identity {
    pub(super) fn new(id: Source) -> Self {
        Self {
            reader: Reader::new(id.json_paths()),
            id,
            event_type: None,
            event_action: None,
            handshake: None,
        }
    }

    pub(super) fn with_id(mut self, id: Source) -> Self {
        self.id = id;
        self.with_reader()
    }

    pub(super) fn with_event_type(mut self, event_type: Source) -> Self {
        self.event_type = Some(event_type);
        self.with_reader()
    }

    pub(super) fn with_event_action(mut self, action: Source) -> Self {
        self.event_action = Some(action);
        self
    }

    pub(super) fn with_handshake(mut self, rule: HandshakeRule) -> Self {
        self.handshake = Some(rule);
        self.with_reader()
    }

    fn with_reader(mut self) -> Self {
        let challenge = self.handshake.as_ref().map(|rule| &rule.challenge);
        let sources = [Some(&self.id), self.event_type.as_ref(), challenge];
        let paths = sources.into_iter().flatten().flat_map(Source::json_paths);
        self.reader = Reader::new(paths);
        self
    }

    pub(crate) fn id(&self) -> &Source {
        &self.id
    }

    pub(crate) fn event_type(&self) -> Option<&Source> {
        self.event_type.as_ref()
    }

    pub(crate) fn event_action(&self) -> Option<&Source> {
        self.event_action.as_ref()
    }

    /// What qualifies the event type of a request, if anything does.
    pub(super) fn read_action(
        &self,
        head: &Parts,
        body: &[u8],
    ) -> Result<Option<String>, Unreadable> {
        match &self.event_action {
            Some(source) => source.read_alone(head, body),
            None => Ok(None),
        }
    }

    pub(super) fn has_handshake(&self) -> bool {
        self.handshake.is_some()
    }

    /// Reads the delivery id and, if the request has a usable one, the event type.
    ///
    /// The event type is not part of the key, so a missing one is no error. A request without
    /// an id but with the handshake's event type is a handshake.
    pub(crate) fn read(
        &self,
        head: &Parts,
        body: &[u8],
        signed: &Signed,
    ) -> Result<Identified, IdentityError> {
        let matches = if self.reader.is_empty() {
            Vec::new()
        } else {
            match self.reader.read(body) {
                Ok(matches) => matches,
                Err(_) if self.id.json_paths().is_empty() => Vec::new(),
                Err(error) => return Err(IdentityError::of_body(error)),
            }
        };
        let mut matches = matches.into_iter();
        let mut read = |source: &Source, spaces| {
            source.read(&head.headers, body, signed, spaces, &mut matches)
        };
        let id = read(&self.id, Spaces::Refused);
        let event_type = self
            .event_type
            .as_ref()
            .and_then(|source| read(source, Spaces::Allowed).ok()?);
        match (id, event_type, &self.handshake) {
            (Ok(Some(id)), event_type, _) => Ok(Identified::Delivery {
                id: DeliveryId::new(id),
                event_type,
            }),
            (Ok(None), Some(event_type), Some(rule)) if event_type == rule.event_type => {
                let source = &rule.challenge;
                match read(source, Spaces::Refused) {
                    Ok(Some(challenge)) => Ok(Identified::Handshake(Handshake::text(
                        event_type, challenge,
                    ))),
                    Ok(None) => Err(IdentityError::of_challenge(source, "missing")),
                    Err(fault) => Err(IdentityError::of_challenge(source, fault)),
                }
            }
            (Ok(None), event_type, _) => {
                Err(IdentityError::of_id(&self.id, "missing").with_event_type(event_type))
            }
            (Err(fault), event_type, _) => {
                Err(IdentityError::of_id(&self.id, fault).with_event_type(event_type))
            }
        }
    }
}

/// An authentic request has no usable delivery id. It is refused, because it could only be
/// processed without dedupe.
///
/// The text names the place and the fault, never the value.
#[derive(Debug)]
pub struct IdentityError {
    text: String,
    /// Of an event that may be ignored for it.
    event_type: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl IdentityError {
    fn of_id(id: &Source, fault: impl fmt::Display) -> Self {
        Self {
            text: format!("no usable delivery id: {id} is {fault}"),
            source: None,
            event_type: None,
        }
    }

    fn with_event_type(self, event_type: Option<String>) -> Self {
        Self { event_type, ..self }
    }

    pub(crate) fn event_type(&self) -> Option<&str> {
        self.event_type.as_deref()
    }

    fn of_challenge(challenge: &Source, fault: impl fmt::Display) -> Self {
        Self {
            text: format!("no usable challenge: {challenge} is {fault}"),
            source: None,
            event_type: None,
        }
    }

    fn of_body(error: ReadError) -> Self {
        match error {
            ReadError::NotJson(error) => Self {
                text: "the body is not valid JSON".into(),
                source: Some(error.into()),
                event_type: None,
            },
            ReadError::NotUtf8(error) => Self {
                text: "the body is not valid JSON".into(),
                source: Some(error.into()),
                event_type: None,
            },
            ReadError::Ambiguous => Self {
                text: "no usable delivery id: a member is in the body twice".into(),
                source: None,
                event_type: None,
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
    use http::{HeaderName, HeaderValue, Request};

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
        match Identity::new(id).read(&head, body.as_bytes(), &Signed::new()) {
            Ok(Identified::Delivery { id, .. }) => id.to_string(),
            Ok(Identified::Handshake(_)) => "a handshake".into(),
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
        Ok(
            match identity.read(head, body.as_bytes(), &Signed::new())? {
                Identified::Delivery { id, event_type } => [Some(id.to_string()), event_type, None],
                Identified::Handshake(handshake) => [
                    None,
                    Some(handshake.event_type().to_owned()),
                    Some(handshake.challenge().to_owned()),
                ],
            },
        )
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
            .with_handshake(HandshakeRule {
                event_type: "hello".into(),
                challenge: json("$.challenge"),
            });
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
}
