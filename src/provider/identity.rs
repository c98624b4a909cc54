//! Identifies an authentic request: it reads the id and the event type of the delivery, or recognizes a handshake.
//! `source.rs` reads each value from a header or by a JSON path.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;

use super::delivery::DeliveryId;
use super::handshake::{Handshake, HandshakeRule};
use super::json_path::{JsonPath, Match, ReadError, Reader};
use super::signature::Signed;
use super::source::{Fault, Source, Spaces, Unreadable};

/// Reported in place of a version that is not a usable text or integer, or that occurs twice.
const UNREADABLE_VERSION: &str = "(unreadable)";

/// Where the delivery id, the event type and the challenge are found in a provider's requests.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    id: Source,
    event_type: Option<Source>,
    /// The qualifier of the event type.
    event_action: Option<Source>,
    /// The version of the payload, in the provider's API.
    version: Option<Source>,
    /// The versions that the application expects. The version is read only if there are any.
    expected_versions: Vec<Arc<str>>,
    /// Where the body says whether the event is live.
    livemode: Option<JsonPath>,
    /// The mode that the application expects. The mode is read only if one is set.
    expected_livemode: Option<bool>,
    handshake: Option<HandshakeRule>,
    /// Reads the JSON paths in this order: the id, the event type, the version if one is expected, the challenge,
    /// and the mode if one is expected.
    reader: Reader,
}

/// The result for an authentic request.
pub(crate) enum Identified {
    Delivery {
        id: DeliveryId,
        event_type: Option<String>,
        /// The version or the mode, if it is not the expected one.
        other_version: Option<String>,
    },
    Handshake(Handshake),
}

impl Identified {
    fn of_unreadable_version(mut self) -> Self {
        if let Self::Delivery { other_version, .. } = &mut self {
            *other_version = Some(UNREADABLE_VERSION.to_owned());
        }
        self
    }
}

impl Identity {
    pub(super) fn new(id: Source) -> Self {
        Self {
            reader: Reader::new(id.json_paths()),
            id,
            event_type: None,
            event_action: None,
            version: None,
            expected_versions: Vec::new(),
            livemode: None,
            expected_livemode: None,
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

    pub(super) fn with_version(mut self, version: Source) -> Self {
        self.version = Some(version);
        self.with_reader()
    }

    pub(super) fn with_expected_version(mut self, version: Arc<str>) -> Self {
        self.expected_versions.push(version);
        self.with_reader()
    }

    pub(super) fn with_livemode(mut self, livemode: JsonPath) -> Self {
        self.livemode = Some(livemode);
        self.with_reader()
    }

    pub(super) fn with_expected_livemode(mut self, expected: bool) -> Self {
        self.expected_livemode = Some(expected);
        self.with_reader()
    }

    pub(super) fn with_handshake(mut self, rule: HandshakeRule) -> Self {
        self.handshake = Some(rule);
        self.with_reader()
    }

    /// The identity without the values that are only compared with expected ones.
    fn without_version(mut self) -> Self {
        self.version = None;
        self.livemode = None;
        self.with_reader()
    }

    fn with_reader(mut self) -> Self {
        let challenge = self.handshake.as_ref().map(|rule| &rule.challenge);
        let version = self.expected_version_source();
        let sources = [Some(&self.id), self.event_type.as_ref(), version, challenge];
        let paths = sources.into_iter().flatten().flat_map(Source::json_paths);
        self.reader = Reader::new(paths.chain(self.expected_livemode_path()));
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

    pub(crate) fn version(&self) -> Option<&Source> {
        self.version.as_ref()
    }

    pub(crate) fn has_livemode(&self) -> bool {
        self.livemode.is_some()
    }

    pub(crate) fn expects_livemode(&self) -> bool {
        self.expected_livemode.is_some()
    }

    /// The expected versions, without the mode.
    pub(crate) fn expected_payload_versions(&self) -> &[Arc<str>] {
        &self.expected_versions
    }

    /// The expected versions and the expected mode.
    pub(crate) fn expected_versions(&self) -> Vec<Arc<str>> {
        let mode = self.expected_livemode.map(|is_live| mode(is_live).into());
        self.expected_versions.iter().cloned().chain(mode).collect()
    }

    /// Where the mode is found, if one is expected.
    fn expected_livemode_path(&self) -> Option<&JsonPath> {
        let path = self.livemode.as_ref();
        path.filter(|_| self.expected_livemode.is_some())
    }

    /// The mode, if it is not the expected one. A mode that cannot be read counts as expected.
    fn other_mode(&self, found: Option<Match>) -> Option<String> {
        let is_live = match found {
            Some(Match::Boolean(is_live)) => is_live,
            Some(Match::Nothing | Match::Text(_) | Match::Null | Match::Other) | None => {
                return None;
            }
        };
        (self.expected_livemode? != is_live).then(|| mode(is_live).to_owned())
    }

    /// Where the version is found, if one is expected.
    fn expected_version_source(&self) -> Option<&Source> {
        let version = self.version.as_ref();
        version.filter(|_| !self.expected_versions.is_empty())
    }

    fn is_other_version(&self, version: &str) -> bool {
        !self
            .expected_versions
            .iter()
            .any(|known| **known == *version)
    }

    /// The qualifier of a request's event type, if there is one.
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

    /// Reads the delivery id, and the event type if the request has a usable one.
    ///
    /// The event type is not part of the key, so a missing one is not an error. A request without an id but with the
    /// handshake's event type is a handshake.
    pub(crate) fn read(
        &self,
        head: &Parts,
        body: &[u8],
        signed: &Signed,
    ) -> Result<Identified, IdentityError> {
        let mut matches = if self.reader.is_empty() {
            Vec::new()
        } else {
            let is_compared =
                self.expected_version_source().is_some() || self.expected_livemode_path().is_some();
            match self.reader.read(body) {
                Ok(matches) => matches,
                // If only the version occurs twice, that is no reason to refuse the request.
                Err(ReadError::Ambiguous) if is_compared => {
                    let identified = self.clone().without_version().read(head, body, signed)?;
                    return Ok(identified.of_unreadable_version());
                }
                Err(_) if self.id.json_paths().is_empty() => Vec::new(),
                Err(error) => return Err(IdentityError::of_body(error)),
            }
        };
        let mode = self.expected_livemode_path().and_then(|_| matches.pop());
        let mut matches = matches.into_iter();
        let mut read = |source: &Source, spaces| {
            source.read(&head.headers, body, signed, spaces, &mut matches)
        };
        let id = read(&self.id, Spaces::Refused);
        let event_type = self
            .event_type
            .as_ref()
            .and_then(|source| read(source, Spaces::Allowed).ok()?);
        let version =
            self.expected_version_source()
                .and_then(|source| match read(source, Spaces::Allowed) {
                    Ok(version) => version,
                    Err(Fault::Null) => None,
                    Err(_) => Some(UNREADABLE_VERSION.to_owned()),
                });
        match (id, event_type, &self.handshake) {
            (Ok(Some(id)), event_type, _) => Ok(Identified::Delivery {
                id: DeliveryId::new(id),
                event_type,
                other_version: self
                    .other_mode(mode)
                    .or(version.filter(|version| self.is_other_version(version))),
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

/// The name of a mode, for reports.
fn mode(is_live: bool) -> &'static str {
    match is_live {
        true => "live mode",
        false => "test mode",
    }
}

/// The error for an authentic request without a usable delivery id. Such a request is refused, because it could
/// only be processed without deduplication.
///
/// The text names the place and the fault, but never the value.
#[derive(Debug)]
pub struct IdentityError {
    text: String,
    /// The event type: an event may be ignored by its type, even without a usable id.
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

    /// The id, the event type and the challenge, if they are present.
    fn parts(
        identity: &Identity,
        head: &Parts,
        body: &str,
    ) -> Result<[Option<String>; 3], IdentityError> {
        Ok(
            match identity.read(head, body.as_bytes(), &Signed::new())? {
                Identified::Delivery { id, event_type, .. } => {
                    [Some(id.to_string()), event_type, None]
                }
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

    #[test]
    fn y3_a_version_is_read_beside_the_id_and_never_refused() -> Result<(), http::Error> {
        let expecting = |id: Source| {
            Identity::new(id)
                .with_event_type(json("$.type"))
                .with_version(json("$.version"))
                .with_expected_version("1".into())
                .with_expected_version("2".into())
                .with_handshake(HandshakeRule {
                    event_type: "hello".into(),
                    challenge: json("$.challenge"),
                })
        };
        let head = head(&[(ID, b"a")])?;
        let of = |identity: &Identity, body: &str| match identity.read(
            &head,
            body.as_bytes(),
            &Signed::new(),
        ) {
            Ok(Identified::Delivery {
                id,
                event_type,
                other_version,
            }) => {
                let parts = [Some(id.to_string()), event_type, other_version];
                parts.map(|part| part.unwrap_or("-".into())).join(" ")
            }
            Ok(Identified::Handshake(handshake)) => handshake.challenge().to_owned(),
            Err(error) => error.to_string(),
        };
        let by_path = expecting(json("$.id"));
        for (body, expected) in [
            (r#"{"version":"3","type":"t","id":"a"}"#, "a t 3"),
            (r#"{"version":3,"id":"a"}"#, "a - 3"),
            (r#"{"id":"a","type":"t","version":"1"}"#, "a t -"),
            (r#"{"id":"a","type":"t","version":2}"#, "a t -"),
            (r#"{"id":"a","type":"t"}"#, "a t -"),
            (r#"{"id":"a","version":null}"#, "a - -"),
            (r#"{"id":"a","version":{"id":"b"}}"#, "a - (unreadable)"),
            (r#"{"id":"a","version":"\u0000"}"#, "a - (unreadable)"),
            (r#"{"id":"a","version":""}"#, "a - (unreadable)"),
            (r#"{"id":"a","version":2.5}"#, "a - (unreadable)"),
            (r#"{"id":"a","version":true}"#, "a - (unreadable)"),
            // It is not known which of the two versions counts.
            (
                r#"{"id":"a","type":"t","version":"1","version":"3"}"#,
                "a t (unreadable)",
            ),
            (r#"{"type":"hello","challenge":"c","version":"3"}"#, "c"),
            (
                r#"{"id":"a","id":"b","version":"3"}"#,
                "no usable delivery id: a member is in the body twice",
            ),
        ] {
            assert_eq!(of(&by_path, body), expected, "{body}");
        }
        // A body that is not JSON has no version.
        let by_header = expecting(Source::header(ID));
        assert_eq!(of(&by_header, "{"), "a - -");
        assert_eq!(of(&by_header, r#"{"version":"3"}"#), "a - 3");
        Ok(())
    }

    #[test]
    fn y3_a_mode_is_read_beside_the_id_and_never_refused() -> Result<(), http::Error> {
        let expecting = |is_live| {
            Identity::new(json("$.id"))
                .with_livemode(JsonPath::member("livemode"))
                .with_version(json("$.version"))
                .with_expected_version("1".into())
                .with_expected_livemode(is_live)
                .with_event_type(json("$.type"))
                .with_handshake(HandshakeRule {
                    event_type: "hello".into(),
                    challenge: json("$.challenge"),
                })
        };
        let head = head(&[])?;
        let of = |is_live, body: &str| match expecting(is_live).read(
            &head,
            body.as_bytes(),
            &Signed::new(),
        ) {
            Ok(Identified::Delivery { other_version, .. }) => other_version.unwrap_or("-".into()),
            Ok(Identified::Handshake(handshake)) => handshake.challenge().to_owned(),
            Err(error) => error.to_string(),
        };
        for (body, live_is_expected, test_is_expected) in [
            (r#"{"id":"a","livemode":true}"#, "-", "live mode"),
            (r#"{"livemode": false ,"id":"a"}"#, "test mode", "-"),
            (
                r#"{"id":"a","livemode":false,"version":"2"}"#,
                "test mode",
                "2",
            ),
            // The mode is not known.
            (r#"{"id":"a"}"#, "-", "-"),
            (r#"{"id":"a","livemode":"false"}"#, "-", "-"),
            (r#"{"id":"a","livemode":null}"#, "-", "-"),
            (
                r#"{"id":"a","livemode":true,"livemode":false}"#,
                UNREADABLE_VERSION,
                UNREADABLE_VERSION,
            ),
            (
                r#"{"type":"hello","challenge":"c","livemode":false}"#,
                "c",
                "c",
            ),
        ] {
            assert_eq!(of(true, body), live_is_expected, "{body}");
            assert_eq!(of(false, body), test_is_expected, "{body}");
        }
        Ok(())
    }

    #[test]
    fn y3_a_version_that_is_not_expected_is_not_read() {
        let identity = Identity::new(Source::header(ID)).with_version(json("$.version"));
        assert!(identity.reader.is_empty());
    }
}
