//! HMAC-SHA256 in a header, described by data.

use std::borrow::Cow;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;
use serde_json::Value;

use super::mac::{ExpectedMac, MAC_LEN, hmac_sha256};
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use super::signed_content::{Part, SignedContent};
use super::timestamp::{TimeUnit, to_unix_time, unix_time};
use super::{first_value, only_value};
use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::{Secret, Secrets};

/// HMAC-SHA256 in a header, described by data.
///
/// | the header's value | how to describe it |
/// |---|---|
/// | `<hex>` | `HmacSha256::hex(header)` |
/// | `sha256=<hex>` | `HmacSha256::hex(header).prefix("sha256=")` |
/// | `<base64>` | `HmacSha256::base64(header)` |
/// | `v1=<hex>,v1=<hex>` | `HmacSha256::hex(header).prefix("v1=").separator(',')` |
/// | `t=<time>,v1=<hex>,v1=<hex>` | `HmacSha256::hex(header).prefix("v1=").separator(',').timestamp_field("t=")` |
///
/// By default the raw body is signed. With a timestamp, `{timestamp}.{body}` is signed.
/// [`signed`](Self::signed) sets any other content. Times are Unix times in whole seconds, or in
/// milliseconds ([`timestamp_in_milliseconds`](Self::timestamp_in_milliseconds)). Hexadecimal
/// digits are lower-case, base64 is the standard alphabet with padding, and nothing is trimmed,
/// as in the providers' SDKs.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::signature::{HmacSha256, SignedContent};
///
/// // Slack: `X-Slack-Signature: v0=<hex>` over `v0:<X-Slack-Request-Timestamp>:<body>`
/// let slack = HmacSha256::hex(HeaderName::from_static("x-slack-signature"))
///     .prefix("v0=")
///     .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
///     .signed(SignedContent::new().text("v0:").timestamp().text(":").body());
/// ```
#[derive(Clone, Debug)]
pub struct HmacSha256 {
    header: HeaderName,
    /// Other names of the header, tried if it is absent.
    alternatives: Vec<HeaderName>,
    encoding: Encoding,
    prefix: Cow<'static, str>,
    separator: Option<char>,
    timestamp: Option<TimestampSource>,
    time_unit: TimeUnit,
    id: Option<HeaderName>,
    content: SignedContent,
}

#[derive(Clone, Copy, Debug)]
enum Encoding {
    Hex,
    Base64,
}

#[derive(Clone, Debug)]
enum TimestampSource {
    Header(HeaderName),
    /// The item of the signature header with this prefix.
    Field(Cow<'static, str>),
    /// An integer in the JSON body.
    Json {
        path: JsonPath,
        reader: Reader,
    },
}

impl HmacSha256 {
    /// The signature is in `header`, as lower-case hexadecimal digits.
    pub fn hex(header: HeaderName) -> Self {
        Self::new(header, Encoding::Hex)
    }

    /// The signature is in `header`, in base64 (RFC 4648, section 4, padded).
    pub fn base64(header: HeaderName) -> Self {
        Self::new(header, Encoding::Base64)
    }

    /// `t=<time>,v1=<hex>`, as Stripe does.
    pub(in crate::provider) fn timestamped(header: HeaderName) -> Self {
        Self::hex(header)
            .prefix("v1=")
            .separator(',')
            .timestamp_field("t=")
    }

    fn new(header: HeaderName, encoding: Encoding) -> Self {
        Self {
            header,
            alternatives: Vec::new(),
            encoding,
            prefix: Cow::Borrowed(""),
            separator: None,
            timestamp: None,
            time_unit: TimeUnit::Seconds,
            id: None,
            content: SignedContent::new().body(),
        }
    }

    /// Another name for the signature header, used if those named before are absent.
    #[must_use]
    pub fn or_header(mut self, header: HeaderName) -> Self {
        self.alternatives.push(header);
        self
    }

    /// The text before each signature, such as `sha256=`. Default: none.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The header is a list with this separator. Items without the prefix are skipped, and one
    /// matching signature is enough. Default: the header is one signature.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Self {
        self.separator = Some(separator);
        self
    }

    /// The time of signing is the item of the signature header with this prefix, such as `t=`.
    /// The signed content becomes `{timestamp}.{body}`.
    #[must_use]
    pub fn timestamp_field(self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.timestamp(TimestampSource::Field(prefix.into()))
    }

    /// The time of signing is in a header of its own. The signed content becomes
    /// `{timestamp}.{body}`.
    #[must_use]
    pub fn timestamp_header(self, header: HeaderName) -> Self {
        self.timestamp(TimestampSource::Header(header))
    }

    /// The time of signing is an integer in the JSON body. The signed content becomes the body
    /// alone. A body without a time is rejected.
    #[must_use]
    pub fn timestamp_json(mut self, path: JsonPath) -> Self {
        self.timestamp = Some(TimestampSource::Json {
            reader: Reader::new([&path]),
            path,
        });
        self.content = SignedContent::new().body();
        self
    }

    /// Times are in milliseconds. Default: seconds.
    #[must_use]
    pub fn timestamp_in_milliseconds(mut self) -> Self {
        self.time_unit = TimeUnit::Milliseconds;
        self
    }

    fn timestamp(mut self, source: TimestampSource) -> Self {
        self.timestamp = Some(source);
        self.content = SignedContent::new().timestamp().text(".").body();
        self
    }

    /// The header with the delivery id, for [`SignedContent::id`].
    #[must_use]
    pub fn id_header(mut self, header: HeaderName) -> Self {
        self.id = Some(header);
        self
    }

    /// What the signature covers. Call it after the methods that name the timestamp and the id.
    ///
    /// # Panics
    ///
    /// If the content leaves out the body, or a timestamp in a header; or if it has a timestamp
    /// or an id whose place was not named.
    #[must_use]
    pub fn signed(mut self, content: SignedContent) -> Self {
        let has_timestamp = match self.timestamp {
            None | Some(TimestampSource::Json { .. }) => false,
            Some(TimestampSource::Header(_) | TimestampSource::Field(_)) => true,
        };
        assert!(
            content.has(&Part::Body),
            "the signed content leaves out the body"
        );
        assert!(
            has_timestamp || !content.has(&Part::Timestamp),
            "the signed content has a timestamp, but its header was not named"
        );
        assert!(
            !has_timestamp || content.has(&Part::Timestamp),
            "the signed content leaves out the timestamp that was named"
        );
        assert!(
            self.id.is_some() || !content.has(&Part::Id),
            "the signed content has an id, but its header was not named"
        );
        self.content = content;
        self
    }

    /// The signature header of a request: its name and its only value.
    fn signature<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> Result<(&'a HeaderName, &'a str), SignatureError> {
        if headers.contains_key(&self.header) || self.alternatives.is_empty() {
            return Ok((&self.header, only_value(headers, &self.header)?));
        }
        first_value(headers, &self.alternatives)
    }

    fn items<'a>(&self, value: &'a str) -> impl Iterator<Item = &'a str> {
        let separator = self.separator;
        value.split(move |c| Some(c) == separator)
    }

    /// A timestamp outside the body: its text, which is signed, and the time.
    fn read_timestamp<'a>(
        &self,
        headers: &'a HeaderMap,
        (name, value): (&HeaderName, &'a str),
    ) -> Result<Option<(&'a str, SystemTime)>, SignatureError> {
        let (name, text) = match &self.timestamp {
            None | Some(TimestampSource::Json { .. }) => return Ok(None),
            Some(TimestampSource::Header(name)) => (name, only_value(headers, name)?),
            Some(TimestampSource::Field(prefix)) => {
                let mut found = self
                    .items(value)
                    .filter_map(|item| item.strip_prefix(&**prefix));
                match (found.next(), found.next()) {
                    (Some(text), None) => (name, text),
                    // SDKs differ in which of two timestamps counts.
                    _ => return Err(SignatureError::MalformedHeader(name.clone())),
                }
            }
        };
        let time = unix_time(text, self.time_unit)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))?;
        Ok(Some((text, time)))
    }

    /// The time in an authentic body.
    fn read_signed_time(&self, body: &[u8]) -> Result<Option<SystemTime>, SignatureError> {
        let Some(TimestampSource::Json { reader, .. }) = &self.timestamp else {
            return Ok(None);
        };
        let found = reader.read(body).ok().and_then(|mut matches| matches.pop());
        match found {
            Some(Match::Text(text)) => unix_time(&text, self.time_unit)
                .map(Some)
                .ok_or(SignatureError::NoTimestamp),
            Some(Match::Nothing | Match::Other) | None => Err(SignatureError::NoTimestamp),
        }
    }

    /// The signed content of a request.
    fn content_of<'a>(
        &'a self,
        timestamp: &'a str,
        id: &'a str,
        body: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> {
        self.content.parts().iter().map(move |part| match part {
            Part::Text(text) => text.as_bytes(),
            Part::Timestamp => timestamp.as_bytes(),
            Part::Id => id.as_bytes(),
            Part::Body => body,
        })
    }

    /// The well-formed signatures in the header, at least one.
    fn candidates(
        &self,
        (name, value): (&HeaderName, &str),
    ) -> Result<impl Iterator<Item = [u8; MAC_LEN]>, SignatureError> {
        let mut candidates = self
            .items(value)
            .filter_map(|item| self.encoding.decode(item.strip_prefix(&*self.prefix)?))
            .peekable();
        if candidates.peek().is_none() {
            return Err(SignatureError::MalformedHeader(name.clone()));
        }
        Ok(candidates)
    }
}

impl SignatureScheme for HmacSha256 {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        let signature = self.signature(&head.headers)?;
        let _ = self.candidates(signature)?;
        self.read_timestamp(&head.headers, signature)?;
        if let Some(id) = &self.id {
            only_value(&head.headers, id)?;
        }
        Ok(())
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let (headers, body) = (request.headers(), request.body());
        let signature = self.signature(headers)?;
        let timestamp = self.read_timestamp(headers, signature)?;
        let id = match &self.id {
            Some(name) => only_value(headers, name)?,
            None => "",
        };
        let text = timestamp.map_or("", |(text, _)| text);
        for secret in secrets.iter() {
            let expected = ExpectedMac::of(secret.expose(), self.content_of(text, id, body));
            if self.candidates(signature)?.any(|mac| expected.matches(mac)) {
                let time = match timestamp {
                    Some((_, time)) => Some(time),
                    None => self.read_signed_time(body)?,
                };
                return Ok(time.map_or_else(Signed::new, |time| Signed::new().at(time)));
            }
        }
        Err(SignatureError::NoMatch)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        if self.content.has(&Part::Id) {
            self.id.as_slice()
        } else {
            &[]
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let time = to_unix_time(request.time(), self.time_unit);
        if let Some(TimestampSource::Header(name)) = &self.timestamp {
            request.insert_header(name.clone(), time.to_string())?;
        }
        if let Some(TimestampSource::Json { path, .. }) = &self.timestamp {
            let time = u64::try_from(time).map_err(|_| SignError::new("the time is too late"))?;
            let mut body = serde_json::from_slice(request.body())
                .map_err(|_| SignError::new("the body is not JSON, but its time is signed"))?;
            if !path.write(&mut body, Value::from(time)) {
                return Err(SignError::new("the body has no place for the signed time"));
            }
            request.set_body(body.to_string());
        }
        let id = match &self.id {
            Some(name) => only_value(request.headers(), name)
                .map_err(|_| SignError::new("the header with the signed id is missing"))?,
            None => "",
        };
        let time = time.to_string();
        let mac = hmac_sha256(secret.expose(), self.content_of(&time, id, request.body()));
        let mut value = String::new();
        if let Some(TimestampSource::Field(prefix)) = &self.timestamp {
            value.extend([prefix, &*time]);
            value.extend(self.separator);
        }
        value.push_str(&self.prefix);
        value.push_str(&self.encoding.encode(mac));
        request.insert_header(self.header.clone(), value)
    }
}

impl Encoding {
    fn encode(self, mac: [u8; MAC_LEN]) -> String {
        match self {
            Self::Hex => hex::encode(mac),
            Self::Base64 => BASE64.encode(mac),
        }
    }

    fn decode(self, text: &str) -> Option<[u8; MAC_LEN]> {
        let mut mac = [0; MAC_LEN];
        match self {
            Self::Hex => {
                if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    return None;
                }
                hex::decode_to_slice(text, &mut mac).ok()?;
            }
            Self::Base64 => {
                let length = BASE64.decode_slice(text, &mut mac).ok()?;
                if length != MAC_LEN {
                    return None;
                }
            }
        }
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
    const TIME: HeaderName = HeaderName::from_static("x-time");
    const ID: HeaderName = HeaderName::from_static("x-id");

    fn content() -> SignedContent {
        SignedContent::new()
    }

    #[test]
    fn only_a_header_in_the_signed_content_is_signed() {
        let scheme = HmacSha256::hex(SIGNATURE)
            .timestamp_header(TIME)
            .id_header(ID);
        assert!(scheme.signed_headers().is_empty());
        let scheme = scheme.signed(content().id().timestamp().body());
        assert_eq!(scheme.signed_headers(), [ID]);
    }

    #[test]
    #[should_panic(expected = "leaves out the body")]
    fn signed_content_without_the_body_is_refused() {
        let _ = HmacSha256::hex(SIGNATURE).signed(content().text("body"));
    }

    #[test]
    #[should_panic(expected = "has a timestamp, but its header was not named")]
    fn signed_content_with_an_unknown_timestamp_is_refused() {
        let _ = HmacSha256::hex(SIGNATURE).signed(content().timestamp().body());
    }

    #[test]
    #[should_panic(expected = "leaves out the timestamp")]
    fn signed_content_without_the_timestamp_is_refused() {
        let scheme = HmacSha256::hex(SIGNATURE).timestamp_header(TIME);
        let _ = scheme.signed(content().body());
    }

    #[test]
    #[should_panic(expected = "has an id, but its header was not named")]
    fn signed_content_with_an_unknown_id_is_refused() {
        let _ = HmacSha256::hex(SIGNATURE).signed(content().id().body());
    }

    #[test]
    fn encodings_are_strict() {
        let hex = "00".repeat(31) + "ff";
        assert!(Encoding::Hex.decode(&hex).is_some());
        for wrong in [
            hex.to_uppercase(),
            format!(" {hex}"),
            format!("{hex}00"),
            hex[2..].to_owned(),
            String::new(),
            "é".repeat(32),
        ] {
            assert_eq!(Encoding::Hex.decode(&wrong), None, "{wrong:?}");
        }

        let base64 = BASE64.encode([0xfb; MAC_LEN]);
        assert!(Encoding::Base64.decode(&base64).is_some());
        for wrong in [
            base64.trim_end_matches('=').to_owned(),
            base64.replace('+', "-"),
            format!("{base64}\n"),
            BASE64.encode([0; MAC_LEN - 1]),
            BASE64.encode([0; MAC_LEN + 1]),
            "A".repeat(100_000),
            String::new(),
        ] {
            assert_eq!(Encoding::Base64.decode(&wrong), None);
        }
    }
}
