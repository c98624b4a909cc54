//! What a signature covers.

use std::borrow::Cow;

use http::header::HeaderName;
use http::{HeaderMap, Method};

use super::digests::sha256;
use super::scheme::SignatureError;
use super::{Encoding, only_value};
use crate::provider::json_path::{JsonPath, Match, Reader};

/// What an HMAC covers, part by part.
///
/// ```
/// use idempotent_webhook::provider::signature::SignedContent;
///
/// // v0:<timestamp>:<body>
/// let slack = SignedContent::new().text("v0:").timestamp().text(":").body();
/// ```
///
/// Use [`optional`](Self::optional) for a provider that leaves out missing parts:
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::provider::signature::SignedContent;
///
/// // id:<query data.id>;request:<header>;<body>, where each part may be missing.
/// let request = HeaderName::from_static("x-request-id");
/// let content = SignedContent::new()
///     .optional(SignedContent::new().text("id:").query_value("data.id").text(";"))
///     .optional(SignedContent::new().text("request:").header(request).text(";"))
///     .body();
/// ```
#[derive(Clone, Debug, Default)]
pub struct SignedContent {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(Cow<'static, str>),
    Timestamp,
    Id,
    Body,
    /// The SHA-256 of the body: as bytes, or as a text if there is an encoding.
    BodySha256(Option<Encoding>),
    Method,
    Url,
    PathAndQuery,
    Header(HeaderName),
    QueryValue(Cow<'static, str>, Case),
    JsonValue(JsonPath),
    Optional(Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    AsSent,
    Lower,
}

/// The values of the parts, in one request.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) timestamp: &'a str,
    pub(super) id: &'a str,
    pub(super) body: &'a [u8],
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    /// The path and the query. Empty if no part of them is signed.
    pub(super) path_and_query: &'a str,
    /// Empty if the URL is not signed.
    pub(super) url: &'a str,
}

impl SignedContent {
    /// Content without any parts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A constant text.
    #[must_use]
    pub fn text(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.with(Part::Text(text.into()))
    }

    /// The time of signing, as it is written in the request.
    #[must_use]
    pub fn timestamp(self) -> Self {
        self.with(Part::Timestamp)
    }

    /// The delivery id, as it is written in its header.
    #[must_use]
    pub fn id(self) -> Self {
        self.with(Part::Id)
    }

    /// The raw body.
    #[must_use]
    pub fn body(self) -> Self {
        self.with(Part::Body)
    }

    /// The SHA-256 of the raw body, as its 32 bytes: for providers that sign a digest in place of the body.
    #[must_use]
    pub fn body_sha256(self) -> Self {
        self.with(Part::BodySha256(None))
    }

    /// The SHA-256 of the raw body, as a text.
    #[must_use]
    pub fn body_sha256_in(self, encoding: Encoding) -> Self {
        self.with(Part::BodySha256(Some(encoding)))
    }

    /// The method, in upper case.
    #[must_use]
    pub fn method(self) -> Self {
        self.with(Part::Method)
    }

    /// The URL that the provider called. It needs [`Provider::public_url`](crate::Provider::public_url).
    #[must_use]
    pub fn url(self) -> Self {
        self.with(Part::Url)
    }

    /// The path and the query, as the server received them.
    #[must_use]
    pub fn path_and_query(self) -> Self {
        self.with(Part::PathAndQuery)
    }

    /// The value of a header. A request without the header is rejected.
    #[must_use]
    pub fn header(self, name: HeaderName) -> Self {
        self.with(Part::Header(name))
    }

    /// The first value with this name in the query, decoded. A request without such a value is rejected.
    #[must_use]
    pub fn query_value(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.with(Part::QueryValue(name.into(), Case::AsSent))
    }

    /// [`query_value`](Self::query_value) with its ASCII letters in lower case.
    #[must_use]
    pub(crate) fn lower_case_query_value(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.with(Part::QueryValue(name.into(), Case::Lower))
    }

    /// A string or an integer in the JSON body. A request without such a value is rejected.
    #[must_use]
    pub(crate) fn json_value(self, path: JsonPath) -> Self {
        self.with(Part::JsonValue(path))
    }

    /// Parts that are left out together if the request lacks one of their values, or if a header or query value
    /// among them is blank.
    #[must_use]
    pub fn optional(self, content: Self) -> Self {
        self.with(Part::Optional(content.parts))
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Whether the content includes this part, even as an optional part.
    pub(super) fn has(&self, part: &Part) -> bool {
        has(&self.parts, &|own| own == part)
    }

    /// Whether the content includes the body or its digest.
    pub(super) fn has_body(&self) -> bool {
        has(&self.parts, &|part| {
            matches!(part, Part::Body | Part::BodySha256(_))
        })
    }

    /// Whether the content includes the path, or a part of the query.
    pub(super) fn has_uri(&self) -> bool {
        has(&self.parts, &|part| {
            matches!(part, Part::PathAndQuery | Part::QueryValue(..))
        })
    }

    /// The headers among the parts.
    pub(super) fn headers(&self) -> Vec<HeaderName> {
        let mut headers = Vec::new();
        add_headers(&self.parts, &mut headers);
        headers
    }

    /// Feeds the content of a request to `update`.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the request lacks a part that is not optional.
    pub(super) fn feed(
        &self,
        values: &Values<'_>,
        update: &mut impl FnMut(&[u8]),
    ) -> Result<(), SignatureError> {
        feed(&self.parts, values, update)
    }
}

fn has(parts: &[Part], is_wanted: &dyn Fn(&Part) -> bool) -> bool {
    parts.iter().any(|part| match part {
        Part::Optional(parts) => has(parts, is_wanted),
        part => is_wanted(part),
    })
}

fn add_headers(parts: &[Part], headers: &mut Vec<HeaderName>) {
    for part in parts {
        match part {
            Part::Header(name) => headers.push(name.clone()),
            Part::Optional(parts) => add_headers(parts, headers),
            _ => {}
        }
    }
}

fn feed(
    parts: &[Part],
    values: &Values<'_>,
    update: &mut impl FnMut(&[u8]),
) -> Result<(), SignatureError> {
    for part in parts {
        match part {
            Part::Text(text) => update(text.as_bytes()),
            Part::Timestamp => update(values.timestamp.as_bytes()),
            Part::Id => update(values.id.as_bytes()),
            Part::Body => update(values.body),
            Part::BodySha256(None) => update(&sha256([values.body])),
            Part::BodySha256(Some(encoding)) => {
                update(encoding.encode(&sha256([values.body])).as_bytes());
            }
            Part::Method => update(values.method.as_str().as_bytes()),
            Part::Url => update(values.url.as_bytes()),
            Part::PathAndQuery => update(values.path_and_query.as_bytes()),
            Part::Header(name) => update(only_value(values.headers, name)?.as_bytes()),
            Part::QueryValue(name, case) => match (values.query_value(name), case) {
                (Some(value), Case::AsSent) => update(value.as_bytes()),
                (Some(value), Case::Lower) => update(value.to_ascii_lowercase().as_bytes()),
                (None, _) => return Err(SignatureError::NoMatch),
            },
            Part::JsonValue(path) => match json_value(path, values.body) {
                Some(value) => update(value.as_bytes()),
                None => return Err(SignatureError::MalformedBody),
            },
            Part::Optional(parts) if values.have(parts) => feed_all(parts, values, update)?,
            Part::Optional(_) => {}
        }
    }
    Ok(())
}

/// Like `feed`, but `update` has the same type at every level of optional parts. The type of a closure would grow with
/// each level.
fn feed_all(
    parts: &[Part],
    values: &Values<'_>,
    update: &mut dyn FnMut(&[u8]),
) -> Result<(), SignatureError> {
    feed(parts, values, &mut |part: &[u8]| update(part))
}

/// A text or an integer in a JSON body.
fn json_value(path: &JsonPath, body: &[u8]) -> Option<String> {
    match Reader::new([path]).read(body).ok()?.pop()? {
        Match::Text(text) => Some(text),
        Match::Nothing | Match::Boolean(_) | Match::Null | Match::Other => None,
    }
}

impl Values<'_> {
    /// Whether the request has the values of all parts.
    fn have(&self, parts: &[Part]) -> bool {
        parts.iter().all(|part| match part {
            Part::Header(name) => self
                .headers
                .get(name)
                .is_some_and(|value| !value.as_bytes().trim_ascii().is_empty()),
            Part::QueryValue(name, _) => self
                .query_value(name)
                .is_some_and(|value| !value.trim().is_empty()),
            Part::JsonValue(path) => json_value(path, self.body).is_some(),
            _ => true,
        })
    }

    fn query_value(&self, wanted: &str) -> Option<Cow<'_, str>> {
        let (_, query) = self.path_and_query.split_once('?')?;
        form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const ID: HeaderName = HeaderName::from_static("x-id");

    fn content_of(content: &SignedContent, path_and_query: &str, id: Option<&str>) -> String {
        content_of_body(content, path_and_query, id, b"body")
    }

    fn content_of_body(
        content: &SignedContent,
        path_and_query: &str,
        id: Option<&str>,
        body: &[u8],
    ) -> String {
        let mut headers = HeaderMap::new();
        for id in id
            .into_iter()
            .filter_map(|id| HeaderValue::from_str(id).ok())
        {
            headers.append(ID, id);
        }
        let values = Values {
            timestamp: "1",
            id: "2",
            body,
            method: &Method::PUT,
            headers: &headers,
            path_and_query,
            url: "https://a",
        };
        let mut fed = Vec::new();
        match content.feed(&values, &mut |part| fed.extend_from_slice(part)) {
            Ok(()) => String::from_utf8_lossy(&fed).into_owned(),
            Err(error) => format!("! {error:?}"),
        }
    }

    #[test]
    fn parts_follow_each_other() {
        let content = SignedContent::new()
            .method()
            .text(" ")
            .path_and_query()
            .text(" ")
            .url()
            .timestamp()
            .id()
            .header(ID)
            .body();
        assert_eq!(
            content_of(&content, "/a?b=%20", Some("3")),
            "PUT /a?b=%20 https://a123body"
        );
        assert_eq!(content_of(&content, "/", None), "! MissingHeader(\"x-id\")");
    }

    /// The digest is from FIPS 180-2.
    #[test]
    fn a_digest_of_the_body_is_in_bytes_or_a_text() {
        let of = |content: SignedContent| {
            let mut fed = Vec::new();
            let values = Values {
                timestamp: "",
                id: "",
                body: b"abc",
                method: &Method::POST,
                headers: &HeaderMap::new(),
                path_and_query: "",
                url: "",
            };
            let result = content.feed(&values, &mut |part| fed.extend_from_slice(part));
            result.map(|()| fed)
        };
        let hex = b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let text = SignedContent::new().body_sha256_in(Encoding::Hex);
        assert!(text.has_body());
        assert_eq!(of(text).as_deref(), Ok(hex.as_slice()));
        let bytes = SignedContent::new().text("=").body_sha256();
        assert!(bytes.has_body() && !bytes.has(&Part::Body));
        let digest = of(bytes).map(|fed| fed.strip_prefix(b"=").map(hex::encode));
        assert_eq!(digest, Ok(std::str::from_utf8(hex).ok().map(str::to_owned)));
    }

    #[test]
    fn optional_parts_are_left_out_together() {
        let content = SignedContent::new()
            .optional(SignedContent::new().text("q:").query_value("a.b").text(";"))
            .optional(SignedContent::new().text("h:").header(ID).text(";"))
            .body();
        assert_eq!(
            content_of(&content, "/?a.b=x%2By+z&a.b=w", Some("3")),
            "q:x+y z;h:3;body"
        );
        assert_eq!(content_of(&content, "/?a=1", Some("3")), "h:3;body");
        assert_eq!(content_of(&content, "/?a.b=+", Some("")), "body");
        assert_eq!(content_of(&content, "/", None), "body");
        assert_eq!(content.headers(), [ID]);
        assert!(content.has(&Part::Header(ID)));
    }

    #[test]
    fn a_json_value_is_a_text_or_an_integer() {
        let value = || SignedContent::new().json_value(JsonPath::member("a"));
        let required = |body: &str| content_of_body(&value(), "/", None, body.as_bytes());
        assert_eq!(required(r#"{"a":"\u00e9 \"1\""}"#), "é \"1\"");
        assert_eq!(required(r#"{"b":0,"a":1750000000}"#), "1750000000");
        let optional = SignedContent::new().optional(value().text(";")).text("-");
        let optional = |body: &str| content_of_body(&optional, "/", None, body.as_bytes());
        assert_eq!(optional(r#"{"a":1}"#), "1;-");
        for without in ["", "{}", "[]", r#"{"a":null}"#, r#"{"a":1.5}"#, r#"{"a":"#] {
            assert_eq!(required(without), "! MalformedBody", "{without}");
            assert_eq!(optional(without), "-", "{without}");
        }
    }
}
