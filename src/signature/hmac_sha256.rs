//! HMAC-SHA256 in a header, described by data.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use super::timestamp::{TimeUnit, unix_time};
use super::{SignatureError, SignatureScheme, first_value, only_value};
use crate::crypto::{ExpectedMac, MAC_LEN};
use crate::json_path::{Found, JsonPath, Reader};
use crate::secret::Secrets;

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
/// By default the raw body is signed. Once a timestamp is named, what is signed is
/// `{timestamp}.{body}`; [`signed`](Self::signed) sets any other template. Times are
/// Unix times in whole seconds, or in milliseconds where
/// [`timestamp_in_milliseconds`](Self::timestamp_in_milliseconds) says so. Hexadecimal digits are lower-case, base64 is the
/// standard alphabet with padding, and nothing is trimmed, as in the providers' SDKs.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::HmacSha256;
///
/// // Slack: `X-Slack-Signature: v0=<hex>` over `v0:<X-Slack-Request-Timestamp>:<body>`
/// let slack = HmacSha256::hex(HeaderName::from_static("x-slack-signature"))
///     .prefix("v0=")
///     .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
///     .signed("v0:{timestamp}:{body}")?;
/// # Ok::<(), idempotent_webhook::TemplateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HmacSha256 {
    headers: Vec<HeaderName>,
    encoding: Encoding,
    prefix: Cow<'static, str>,
    separator: Option<char>,
    timestamp: Option<TimestampSource>,
    time_unit: TimeUnit,
    id: Option<HeaderName>,
    template: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
enum Encoding {
    Hex,
    Base64,
}

#[derive(Clone, Debug)]
enum TimestampSource {
    Header(HeaderName),
    /// An item of the signature header that starts so.
    Field(Cow<'static, str>),
    /// An integer in the JSON body.
    Json(Reader),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Timestamp,
    Id,
    Body,
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
    pub(crate) fn timestamped(header: HeaderName) -> Self {
        Self::hex(header)
            .prefix("v1=")
            .separator(',')
            .timestamp_field("t=")
    }

    fn new(header: HeaderName, encoding: Encoding) -> Self {
        Self {
            headers: vec![header],
            encoding,
            prefix: Cow::Borrowed(""),
            separator: None,
            timestamp: None,
            time_unit: TimeUnit::Seconds,
            id: None,
            template: vec![Part::Body],
        }
    }

    /// Another name for the signature header, looked for if those named before are
    /// absent.
    #[must_use]
    pub fn or_header(mut self, header: HeaderName) -> Self {
        self.headers.push(header);
        self
    }

    /// What stands before each signature, such as `sha256=`. Default: nothing.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The header is a list, divided so. Items without the prefix are passed over,
    /// and one signature that matches is enough. Default: the header is one
    /// signature.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Self {
        self.separator = Some(separator);
        self
    }

    /// The time of signing is an item of the signature header itself and starts with
    /// `prefix`, such as `t=`. What is signed becomes `{timestamp}.{body}`.
    #[must_use]
    pub fn timestamp_field(self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.timestamp(TimestampSource::Field(prefix.into()))
    }

    /// The time of signing is in a header of its own. What is signed becomes
    /// `{timestamp}.{body}`.
    #[must_use]
    pub fn timestamp_header(self, header: HeaderName) -> Self {
        self.timestamp(TimestampSource::Header(header))
    }

    /// The time of signing is an integer in the JSON body, which alone is signed. A body
    /// without one is refused.
    #[must_use]
    pub fn timestamp_json(mut self, path: &JsonPath) -> Self {
        self.timestamp = Some(TimestampSource::Json(Reader::new([path])));
        self.template = vec![Part::Body];
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
        self.template = vec![Part::Timestamp, Part::Text(".".into()), Part::Body];
        self
    }

    /// The header whose value `{id}` stands for in the template.
    #[must_use]
    pub fn id_header(mut self, header: HeaderName) -> Self {
        self.id = Some(header);
        self
    }

    /// What is signed: any text with `{body}` and, if they have been named before,
    /// `{timestamp}` and `{id}`. The values are signed as they stand in the request.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] if the template leaves `{body}` or a timestamp that has been
    /// named unsigned, or has a placeholder that is unknown or whose header has not
    /// been named.
    pub fn signed(mut self, template: &str) -> Result<Self, TemplateError> {
        let parts = parse_template(template)?;
        let has = |part: Part| parts.contains(&part);
        let beside_body = match self.timestamp {
            None | Some(TimestampSource::Json(_)) => false,
            Some(TimestampSource::Header(_) | TimestampSource::Field(_)) => true,
        };
        let fault = if !has(Part::Body) {
            Some("it does not sign the {body}")
        } else if has(Part::Timestamp) && !beside_body {
            Some("it signs a {timestamp}, but none has been named")
        } else if !has(Part::Timestamp) && beside_body {
            Some("it does not sign the {timestamp} that has been named")
        } else if has(Part::Id) && self.id.is_none() {
            Some("it signs an {id}, but no header has been named for it")
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(TemplateError(fault.into()));
        }
        self.template = parts;
        Ok(self)
    }

    /// The signature header of this request: its name and its only value.
    fn signature<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> Result<(&'a HeaderName, &'a str), SignatureError> {
        first_value(headers, &self.headers)
    }

    fn items<'a>(&self, value: &'a str) -> impl Iterator<Item = &'a str> {
        let separator = self.separator;
        value.split(move |c| Some(c) == separator)
    }

    /// The text of a timestamp beside the body as it was signed, and the time it stands
    /// for.
    fn read_timestamp<'a>(
        &self,
        headers: &'a HeaderMap,
        (name, value): (&HeaderName, &'a str),
    ) -> Result<Option<(&'a str, SystemTime)>, SignatureError> {
        let (name, text) = match &self.timestamp {
            None | Some(TimestampSource::Json(_)) => return Ok(None),
            Some(TimestampSource::Header(name)) => (name, only_value(headers, name)?),
            Some(TimestampSource::Field(prefix)) => {
                let mut found = self
                    .items(value)
                    .filter_map(|item| item.strip_prefix(&**prefix));
                match (found.next(), found.next()) {
                    (Some(text), None) => (name, text),
                    // SDKs disagree on which of two timestamps counts.
                    _ => return Err(SignatureError::MalformedHeader(name.clone())),
                }
            }
        };
        let time = unix_time(text, self.time_unit)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))?;
        Ok(Some((text, time)))
    }

    /// The time in a body that has been found authentic.
    fn read_signed_time(&self, body: &[u8]) -> Result<Option<SystemTime>, SignatureError> {
        let Some(TimestampSource::Json(reader)) = &self.timestamp else {
            return Ok(None);
        };
        let found = reader.read(body).ok().and_then(|mut found| found.pop());
        match found {
            Some(Found::Text(text)) => unix_time(&text, self.time_unit)
                .map(Some)
                .ok_or(SignatureError::NoTimestamp),
            Some(Found::Nothing | Found::Other) | None => Err(SignatureError::NoTimestamp),
        }
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
        head: &Parts,
        body: &[u8],
        secrets: &Secrets,
    ) -> Result<Option<SystemTime>, SignatureError> {
        let signature = self.signature(&head.headers)?;
        let timestamp = self.read_timestamp(&head.headers, signature)?;
        let id = match &self.id {
            Some(name) => only_value(&head.headers, name)?,
            None => "",
        };
        let signed = || {
            self.template.iter().map(|part| match part {
                Part::Text(text) => text.as_bytes(),
                Part::Timestamp => timestamp.map_or("", |(text, _)| text).as_bytes(),
                Part::Id => id.as_bytes(),
                Part::Body => body,
            })
        };
        for secret in secrets.iter() {
            let expected = ExpectedMac::of(secret.expose(), signed());
            if self.candidates(signature)?.any(|mac| expected.matches(mac)) {
                return match timestamp {
                    Some((_, time)) => Ok(Some(time)),
                    None => self.read_signed_time(body),
                };
            }
        }
        Err(SignatureError::NoMatch)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        if self.template.contains(&Part::Id) {
            self.id.as_slice()
        } else {
            &[]
        }
    }
}

impl Encoding {
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

/// A template of signed content that cannot be right.
#[derive(Clone, Debug)]
pub struct TemplateError(Cow<'static, str>);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the template of the signed content is wrong: {}", self.0)
    }
}

impl std::error::Error for TemplateError {}

fn parse_template(template: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or(TemplateError("a { is not closed".into()))?;
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        parts.push(match name {
            "timestamp" => Part::Timestamp,
            "id" => Part::Id,
            "body" => Part::Body,
            _ => return Err(TemplateError(format!("{{{name}}} is unknown").into())),
        });
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.into()));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
    const TIME: HeaderName = HeaderName::from_static("x-time");
    const ID: HeaderName = HeaderName::from_static("x-id");

    fn fault(scheme: HmacSha256, template: &str) -> String {
        scheme
            .signed(template)
            .err()
            .map_or_else(|| "accepted".into(), |error| error.0.into_owned())
    }

    #[test]
    fn a_template_must_sign_all_that_is_named_and_name_all_that_it_signs() {
        let plain = || HmacSha256::hex(SIGNATURE);
        assert_eq!(fault(plain(), "{body}"), "accepted");
        assert_eq!(fault(plain(), "a{body}b{body}"), "accepted");
        assert_eq!(fault(plain(), "body"), "it does not sign the {body}");
        assert_eq!(fault(plain(), "{body"), "a { is not closed");
        assert_eq!(fault(plain(), "{url}{body}"), "{url} is unknown");
        assert_eq!(
            fault(plain(), "{timestamp}{body}"),
            "it signs a {timestamp}, but none has been named"
        );
        assert_eq!(
            fault(plain().timestamp_header(TIME), "{body}"),
            "it does not sign the {timestamp} that has been named"
        );
        assert_eq!(
            fault(plain(), "{id}.{body}"),
            "it signs an {id}, but no header has been named for it"
        );
        assert_eq!(
            fault(
                plain().timestamp_header(TIME).id_header(ID),
                "{id}.{timestamp}.{body}"
            ),
            "accepted"
        );
    }

    #[test]
    fn only_a_header_in_the_template_is_signed() -> Result<(), TemplateError> {
        let scheme = HmacSha256::hex(SIGNATURE).id_header(ID);
        assert!(scheme.signed_headers().is_empty());
        assert_eq!(scheme.signed("{id}{body}")?.signed_headers(), [ID]);
        Ok(())
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
