//! Where in a request a value is found: a delivery id, an event type or a challenge.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;
use serde_json::value::RawValue;

use super::delivery::{UnusableText, check_text};
use super::digest::{sha256_hex, sha256_of};
use super::json_path::{JsonPath, Match, Reader};
use super::signature::{SignatureScheme, Signed};
use crate::tasks_and_errors::random::random;

/// Where in a request a value is found, such as a delivery id or an event type.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::Source;
///
/// let by_header = Source::header(HeaderName::from_static("x-acme-delivery"));
/// let by_path = Source::json("$.data.object.id".parse()?).and(Source::json("$.type".parse()?));
/// # Ok::<(), idempotent_webhook::provider::JsonPathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Source(Kind);

/// A value is present, or may be present, but cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unreadable;

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Header(HeaderName),
    Json(JsonPath),
    BodyDigest,
    /// The digest of the JSON object in the body, without this member.
    BodyDigestWithout(&'static str),
    Receipt,
    SignedTime,
    SignedValue(&'static str),
    First(Vec<Source>),
    All(Vec<Source>),
}

impl Source {
    /// The value of a header, in visible ASCII. If the header is repeated, the value is not usable.
    pub fn header(name: HeaderName) -> Self {
        Self(Kind::Header(name))
    }

    /// A string or an integer in the JSON body. The whole body must be valid JSON.
    pub fn json(path: JsonPath) -> Self {
        Self(Kind::Json(path))
    }

    /// The SHA-256 of the raw body, for providers that send no id.
    ///
    /// Two events with identical bodies count as one delivery, so make sure that each body contains a time or a
    /// number that makes it unique.
    pub fn body_digest() -> Self {
        Self(Kind::BodyDigest)
    }

    /// A SHA-256 of all members of the body except one.
    ///
    /// This is for providers that send no id, and that write the number or the time of the attempt into the body.
    /// The order of the members does not matter, but every byte of their values does. If the body is not a JSON
    /// object, the value is not usable.
    ///
    /// ```
    /// use idempotent_webhook::Source;
    ///
    /// let source = Source::body_digest_without("attempt");
    /// assert_eq!(source.to_string(), "digest of the body without attempt");
    /// ```
    pub fn body_digest_without(member: &'static str) -> Self {
        Self(Kind::BodyDigestWithout(member))
    }

    /// The time of signing, which the signature covers, in nanoseconds since 1970.
    ///
    /// Together with the [digest of the body](Self::body_digest), it distinguishes events whose bodies are
    /// identical, for providers that send neither an id nor a time in the body. If the provider signs a retry
    /// again, the retry has a new time, so it runs the handler again.
    pub fn signed_time() -> Self {
        Self(Kind::SignedTime)
    }

    /// A value that the signature scheme reads together with the signature, such as a claim of a token: see
    /// [`Signed::value`](crate::provider::signature::Signed::value).
    pub fn signed_value(name: &'static str) -> Self {
        Self(Kind::SignedValue(name))
    }

    /// A new value for each request, so that **nothing is deduplicated**.
    ///
    /// This is for notifications without content, such as "something has changed", whose text is always the same.
    /// Nothing is lost, but a retry runs the handler again, with another
    /// [`idempotency_key`](crate::Delivery::idempotency_key). The handler should ask the provider what has changed
    /// since it last asked.
    pub fn receipt() -> Self {
        Self(Kind::Receipt)
    }

    /// The value of this source or, if the request does not have it, the value of `other`. If the value of this source
    /// is present but not usable, the request is refused, and `other` is not tried.
    ///
    /// A value from a single source never equals a value that [`and`](Self::and) composed of several parts.
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

    /// Both sources together. Each part is preceded by its length, so that `a` and `bc` never collide with `ab` and
    /// `c`. Both must be present and usable.
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

    /// The header that holds the value, if the value is in a header. If there are several sources, the first one
    /// decides.
    ///
    /// ```
    /// use http::HeaderName;
    /// use idempotent_webhook::Source;
    ///
    /// let name = HeaderName::from_static("x-acme-delivery");
    /// let source = Source::header(name.clone()).and(Source::body_digest());
    /// assert_eq!(source.header_name(), Some(&name));
    /// assert_eq!(source.json_path(), None);
    /// ```
    pub fn header_name(&self) -> Option<&HeaderName> {
        match self.first() {
            Kind::Header(name) => Some(name),
            _ => None,
        }
    }

    /// The path of the value, if the value is in the JSON body. If there are several sources, the first one decides.
    pub fn json_path(&self) -> Option<&JsonPath> {
        match self.first() {
            Kind::Json(path) => Some(path),
            _ => None,
        }
    }

    fn first(&self) -> &Kind {
        match &self.0 {
            Kind::First(sources) | Kind::All(sources) => {
                sources.first().map_or(&self.0, Self::first)
            }
            kind => kind,
        }
    }

    /// Whether a signature of this scheme covers the value.
    pub(super) fn is_signed(&self, scheme: &dyn SignatureScheme) -> bool {
        match &self.0 {
            Kind::Header(name) => scheme.signed_headers().contains(name),
            Kind::Json(_) | Kind::BodyDigestWithout(_) => scheme.signs_body(),
            Kind::BodyDigest => scheme.signs_body_bytes(),
            Kind::SignedTime => scheme.signs_time(),
            Kind::SignedValue(name) => scheme.signs_value(name),
            Kind::Receipt => false,
            // One unsigned part is enough to forge a new id.
            Kind::First(sources) | Kind::All(sources) => {
                sources.iter().all(|source| source.is_signed(scheme))
            }
        }
    }

    /// Whether a value can be a composite: a value of several parts, made by `and`.
    fn is_composite(&self) -> bool {
        match &self.0 {
            Kind::All(_) => true,
            Kind::First(sources) => sources.iter().any(Self::is_composite),
            Kind::Header(_)
            | Kind::Json(_)
            | Kind::BodyDigest
            | Kind::BodyDigestWithout(_)
            | Kind::Receipt
            | Kind::SignedTime
            | Kind::SignedValue(_) => false,
        }
    }

    /// Why a provider's list of events does not contain the value that the webhook contains. `None` if the list
    /// contains it. The list gives only these headers. With `has_bodies`, it also gives bodies, whose JSON is the same
    /// as in the webhooks, but whose bytes are not.
    pub(super) fn missing_from(&self, headers: &[HeaderName], has_bodies: bool) -> Option<String> {
        match &self.0 {
            Kind::Header(name) if headers.contains(name) => None,
            Kind::Header(name) => Some(format!("the list does not give the header {name}")),
            Kind::Json(_) if has_bodies => None,
            Kind::Json(_) => Some("the list does not give bodies".to_owned()),
            Kind::BodyDigest | Kind::BodyDigestWithout(_) => {
                Some("the list does not give the bytes of the body".to_owned())
            }
            Kind::Receipt => Some("each request has another one".to_owned()),
            Kind::SignedTime | Kind::SignedValue(_) => {
                Some("the list does not give the signed value".to_owned())
            }
            // It is not known which of the sources a webhook uses, so the list must contain all of them.
            Kind::First(sources) | Kind::All(sources) => sources
                .iter()
                .find_map(|source| source.missing_from(headers, has_bodies)),
        }
    }

    /// The kind, for test deliveries, which write the value into a request.
    #[cfg(feature = "testing")]
    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }

    /// Panics if a kept request does not contain the value.
    #[track_caller]
    pub(crate) fn assert_is_in_requests(&self) {
        let is_in_requests = match &self.0 {
            Kind::Header(_) | Kind::Json(_) | Kind::BodyDigest | Kind::BodyDigestWithout(_) => true,
            Kind::Receipt | Kind::SignedTime | Kind::SignedValue(_) => false,
            Kind::First(sources) | Kind::All(sources) => {
                return sources.iter().for_each(Self::assert_is_in_requests);
            }
        };
        assert!(is_in_requests, "{self} is not in a request that is kept");
    }

    /// The headers from which the value is read.
    pub(crate) fn headers(&self) -> Vec<&HeaderName> {
        match &self.0 {
            Kind::Header(name) => vec![name],
            Kind::Json(_)
            | Kind::BodyDigest
            | Kind::BodyDigestWithout(_)
            | Kind::Receipt
            | Kind::SignedTime
            | Kind::SignedValue(_) => Vec::new(),
            Kind::First(sources) | Kind::All(sources) => {
                sources.iter().flat_map(Self::headers).collect()
            }
        }
    }

    pub(super) fn json_paths(&self) -> Vec<&JsonPath> {
        match &self.0 {
            Kind::Json(path) => vec![path],
            Kind::Header(_)
            | Kind::BodyDigest
            | Kind::BodyDigestWithout(_)
            | Kind::Receipt
            | Kind::SignedTime
            | Kind::SignedValue(_) => Vec::new(),
            Kind::First(sources) | Kind::All(sources) => {
                sources.iter().flat_map(Self::json_paths).collect()
            }
        }
    }

    /// Reads only this value from a request. If it is in a header, it may contain spaces.
    pub(crate) fn read_alone(
        &self,
        head: &Parts,
        body: &[u8],
    ) -> Result<Option<String>, Unreadable> {
        let reader = Reader::new(self.json_paths());
        let matches = match reader.is_empty() {
            true => Vec::new(),
            false => reader.read(body).map_err(|_| Unreadable)?,
        };
        let mut matches = matches.into_iter();
        self.read(
            &head.headers,
            body,
            &Signed::new(),
            Spaces::Allowed,
            &mut matches,
        )
        .map_err(|_| Unreadable)
    }

    /// Reads the value. In a header, an event type may have spaces between its words, but an id may not. Takes the
    /// matches of the JSON paths from `matches`, in the order of [`json_paths`](Self::json_paths).
    pub(super) fn read(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        signed: &Signed,
        spaces: Spaces,
        matches: &mut impl Iterator<Item = Match>,
    ) -> Result<Option<String>, Fault> {
        match &self.0 {
            Kind::Header(name) => read_header(headers, name, spaces),
            Kind::Json(_) => match matches.next() {
                None | Some(Match::Nothing) => Ok(None),
                Some(Match::Text(text)) => usable(text).map(Some),
                Some(Match::Null) => Err(Fault::Null),
                Some(Match::Boolean(_) | Match::Other) => Err(Fault::WrongType),
            },
            Kind::BodyDigest => Ok(Some(sha256_hex(body))),
            Kind::BodyDigestWithout(member) => digest_without(member, body).map(Some),
            Kind::Receipt => Ok(Some(format!("{:016x}{:016x}", random(), random()))),
            Kind::SignedTime => Ok(signed.time().map(nanoseconds)),
            Kind::SignedValue(name) => {
                let value = signed.get_value(name).map(str::to_owned);
                value.map(usable).transpose()
            }
            Kind::First(sources) => {
                let composite = sources.iter().any(Self::is_composite);
                let mut first = Ok(None);
                for source in sources {
                    // Read every source, even after a value was found, to consume its matches.
                    let value = source.read(headers, body, signed, spaces, matches);
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
                    let part = source.read(headers, body, signed, spaces, matches);
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
            Kind::BodyDigestWithout(member) => write!(f, "digest of the body without {member}"),
            Kind::Receipt => f.write_str("receipt"),
            Kind::SignedTime => f.write_str("signed time"),
            Kind::SignedValue(name) => write!(f, "signed value {name}"),
            Kind::First(sources) => join(f, sources, " or "),
            Kind::All(sources) => join(f, sources, " and "),
        }
    }
}

/// Whether the value of a header may contain spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spaces {
    Allowed,
    Refused,
}

impl Spaces {
    fn allow(self, byte: u8) -> bool {
        byte.is_ascii_graphic() || (byte == b' ' && self == Self::Allowed)
    }
}

/// Why a value that is present cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The value is in a header, but not in visible ASCII.
    NotVisibleAscii,
    /// The header with the value is repeated.
    Repeated,
    /// The value is in JSON, but is `null`.
    Null,
    /// The value is in JSON, but is neither `null` nor a string nor an integer.
    WrongType,
    /// The body is not a JSON object.
    NoObject,
    Text(UnusableText),
}

impl From<UnusableText> for Fault {
    fn from(fault: UnusableText) -> Self {
        Self::Text(fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotVisibleAscii => f.write_str("not visible ASCII"),
            Self::Repeated => f.write_str("there more than once"),
            Self::Null | Self::WrongType => f.write_str("neither a string nor an integer"),
            Self::NoObject => f.write_str("not known, as the body is not a JSON object"),
            Self::Text(fault) => fault.fmt(f),
        }
    }
}

/// One part of a composite, preceded by its length.
fn delimited(part: &str) -> String {
    format!("{}:{part}", part.len())
}

/// Makes a plain value different from every composite: a plain value that looks like a composite becomes a
/// composite with a single part, which `and` never makes.
fn set_apart(plain: String) -> String {
    if is_delimited(&plain) {
        delimited(&plain)
    } else {
        plain
    }
}

/// Whether a value looks like a composite.
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

/// The digest of all members except `member`. It does not depend on the order of the members.
fn digest_without(member: &str, body: &[u8]) -> Result<String, Fault> {
    let text = std::str::from_utf8(body).map_err(|_| Fault::NoObject)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut members: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|_| Fault::NoObject)?;
    members.remove(member);
    let parts = members
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), value.get().as_bytes()]);
    Ok(hex::encode(sha256_of(parts)))
}

fn nanoseconds(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos().to_string()
}

fn read_header(
    headers: &HeaderMap,
    name: &HeaderName,
    spaces: Spaces,
) -> Result<Option<String>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Fault::Repeated);
    }
    match value.to_str() {
        Ok(text) if text.trim().is_empty() => Err(UnusableText::Blank.into()),
        Ok(text) if text.bytes().all(|byte| spaces.allow(byte)) => {
            usable(text.to_owned()).map(Some)
        }
        _ => Err(Fault::NotVisibleAscii),
    }
}

fn usable(text: String) -> Result<String, Fault> {
    check_text(&text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Secrets;
    use crate::provider::signature::{SignatureError, SignedRequest};

    const ID: HeaderName = HeaderName::from_static("x-id");

    fn json(path: &str) -> Source {
        #[expect(clippy::unwrap_used, reason = "the tests name paths that parse")]
        Source::json(path.parse().unwrap())
    }

    /// Signs one header, and optionally the body.
    #[derive(Debug)]
    struct Scheme {
        header: Vec<HeaderName>,
        body: bool,
    }

    impl SignatureScheme for Scheme {
        fn verify(&self, _: &SignedRequest<'_>, _: &Secrets) -> Result<Signed, SignatureError> {
            Ok(Signed::new())
        }

        fn signed_headers(&self) -> &[HeaderName] {
            &self.header
        }

        fn signs_body(&self) -> bool {
            self.body
        }
    }

    #[test]
    fn an_id_is_signed_where_forging_it_takes_the_secret() {
        let header = || Source::header(ID);
        let scheme = |header, body| Scheme { header, body };
        let body = scheme(Vec::new(), true);
        assert!(json("$.id").is_signed(&body));
        assert!(Source::body_digest().is_signed(&body));
        assert!(Source::signed_value("jti").is_signed(&body));
        assert!(!header().is_signed(&body));
        assert!(header().is_signed(&scheme(vec![ID], true)));
        assert!(!header().or(json("$.id")).is_signed(&body));
        assert!(!header().and(json("$.id")).is_signed(&body));
        assert!(json("$.a").and(json("$.b")).is_signed(&body));
        assert!(!json("$.id").is_signed(&scheme(vec![ID], false)));
    }

    #[test]
    fn a_digest_without_a_member_is_that_of_all_others() {
        let of = |body: &str| digest_without("retries", body.as_bytes());
        let first = of(r#"{"type":"a","at":18446744073709551617,"retries":0}"#);
        assert!(first.is_ok());
        for retry in [
            r#"{"type":"a","at":18446744073709551617,"retries":1}"#,
            r#"{"retries":{"n":2},"at":18446744073709551617,"type":"a"}"#,
            "\u{feff}{\"type\":\"a\", \"at\": 18446744073709551617}",
        ] {
            assert_eq!(of(retry), first, "{retry}");
        }
        for other in [
            r#"{"type":"a","at":18446744073709551618,"retries":0}"#,
            r#"{"type":"a","at":18446744073709551617,"retries":0,"b":1}"#,
            r#"{"type":"a","at":18446744073709551617,"b":{"retries":0}}"#,
            r#"{"typea":"","at":18446744073709551617}"#,
        ] {
            assert_ne!(of(other), first, "{other}");
        }
        for none in ["", "[]", r#""retries""#, r#"{"retries":0"#] {
            assert_eq!(of(none), Err(Fault::NoObject), "{none}");
        }
    }
}
