//! Signature schemes: where a provider puts its signature and what it signs.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use crate::crypto::{ExpectedMac, MAC_LEN};
use crate::secret::Secrets;

/// How a provider proves that a request is its own.
///
/// [`HmacSha256`] describes most providers by data. Implement this trait for one
/// that it cannot describe, and hand the value to
/// [`CustomProvider::signature`](crate::CustomProvider::signature).
pub trait SignatureScheme: fmt::Debug + Send + Sync + 'static {
    /// Refuses what can be refused from the head alone, before the body is read.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] if no body could make this request authentic.
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        let _ = head;
        Ok(())
    }

    /// Verifies the signature over the exact raw `body` against any of `secrets`.
    ///
    /// Returns the time at which the provider signed, if the signature covers one;
    /// its age is judged afterwards, by [`Tolerance`].
    ///
    /// MACs must be compared in constant time.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] that says why the request is not authentic.
    fn verify(
        &self,
        head: &Parts,
        body: &[u8],
        secrets: &Secrets,
    ) -> Result<Option<SystemTime>, SignatureError>;

    /// The headers whose values the signature covers. A delivery id in one of them
    /// cannot be forged.
    fn signed_headers(&self) -> &[HeaderName] {
        &[]
    }
}

/// Why a request is not authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureError {
    /// The request lacks this header.
    MissingHeader(HeaderName),
    /// This header is there, but not in the form that the scheme prescribes, or more
    /// than once.
    MalformedHeader(HeaderName),
    /// The signature is well-formed, but not the one of these bytes under any of the
    /// secrets.
    NoMatch,
    /// The signature is right, but was made longer ago than the tolerance allows.
    TooOld,
    /// The signature is right, but its time lies further in the future than the
    /// tolerance allows.
    TooNew,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingHeader(name) => write!(f, "header {name} is missing"),
            Self::MalformedHeader(name) => write!(f, "header {name} is malformed"),
            Self::NoMatch => f.write_str("signature matches none of the secrets"),
            Self::TooOld => f.write_str("signature is too old"),
            Self::TooNew => f.write_str("signature is from the future"),
        }
    }
}

impl std::error::Error for SignatureError {}

/// How far the time of signing may be from the time of receipt.
///
/// Both sides are inclusive, in whole seconds: with 300 seconds, a signature of
/// exactly 300 seconds ago passes. It only matters for schemes that sign a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    past: Option<Duration>,
    future: Option<Duration>,
}

impl Tolerance {
    /// At most `limit` old, and any time in the future.
    pub const fn past_only(limit: Duration) -> Self {
        Self {
            past: Some(limit),
            future: None,
        }
    }

    /// At most `limit` old, and at most `limit` in the future.
    pub const fn two_sided(limit: Duration) -> Self {
        Self {
            past: Some(limit),
            future: Some(limit),
        }
    }

    /// Any time. A captured request then stays valid for ever, so that only the
    /// delivery id stands between it and a replay.
    pub const fn unlimited() -> Self {
        Self {
            past: None,
            future: None,
        }
    }

    pub(crate) fn check(self, signed: SystemTime, now: SystemTime) -> Result<(), SignatureError> {
        // Providers sign whole seconds and their SDKs compare whole seconds.
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
            .and_then(|now| at_unix_seconds(now.as_secs()))
            .unwrap_or(now);
        match now.duration_since(signed) {
            Ok(age) if self.past.is_some_and(|limit| age > limit) => Err(SignatureError::TooOld),
            Err(ahead) if self.future.is_some_and(|limit| ahead.duration() > limit) => {
                Err(SignatureError::TooNew)
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn at_unix_seconds(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

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
/// Unix times in whole seconds. Hexadecimal digits are lower-case, base64 is the
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

    fn new(header: HeaderName, encoding: Encoding) -> Self {
        Self {
            headers: vec![header],
            encoding,
            prefix: Cow::Borrowed(""),
            separator: None,
            timestamp: None,
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
        let fault = if !has(Part::Body) {
            Some("it does not sign the {body}")
        } else if has(Part::Timestamp) && self.timestamp.is_none() {
            Some("it signs a {timestamp}, but none has been named")
        } else if !has(Part::Timestamp) && self.timestamp.is_some() {
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
        let name = self
            .headers
            .iter()
            .find(|name| headers.contains_key(*name))
            .or(self.headers.first());
        #[expect(
            clippy::expect_used,
            reason = "`new` puts the first in, nothing takes it out"
        )]
        let name = name.expect("a scheme has at least one header");
        Ok((name, only_value(headers, name)?))
    }

    fn items<'a>(&self, value: &'a str) -> impl Iterator<Item = &'a str> {
        let separator = self.separator;
        value.split(move |c| Some(c) == separator)
    }

    /// The text of the timestamp as it was signed, and the time it stands for.
    fn read_timestamp<'a>(
        &self,
        headers: &'a HeaderMap,
        (name, value): (&HeaderName, &'a str),
    ) -> Result<Option<(&'a str, SystemTime)>, SignatureError> {
        let (name, text) = match &self.timestamp {
            None => return Ok(None),
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
        if text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(seconds) = text.parse()
            && let Some(time) = at_unix_seconds(seconds)
        {
            Ok(Some((text, time)))
        } else {
            Err(SignatureError::MalformedHeader(name.clone()))
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
                return Ok(timestamp.map(|(_, time)| time));
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

/// The value of a header that must be there exactly once, in visible ASCII.
///
/// Where a header is there twice, which one counts is anybody's guess, and that of a
/// proxy on the way may differ from ours.
fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, SignatureError> {
    let mut values = headers.get_all(name).iter();
    let value = values
        .next()
        .ok_or_else(|| SignatureError::MissingHeader(name.clone()))?;
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(text),
        _ => Err(SignatureError::MalformedHeader(name.clone())),
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
    fn tolerance_is_inclusive_in_whole_seconds() {
        let signed = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let limit = Duration::from_secs(300);

        let past = Tolerance::past_only(limit);
        assert_eq!(past.check(signed, at(1_300_999)), Ok(()));
        assert_eq!(
            past.check(signed, at(1_301_000)),
            Err(SignatureError::TooOld)
        );
        assert_eq!(past.check(signed, at(0)), Ok(()));

        let both = Tolerance::two_sided(limit);
        assert_eq!(
            both.check(signed, at(1_301_000)),
            Err(SignatureError::TooOld)
        );
        assert_eq!(both.check(signed, at(700_000)), Ok(()));
        assert_eq!(both.check(signed, at(699_999)), Err(SignatureError::TooNew));

        assert_eq!(Tolerance::unlimited().check(signed, at(0)), Ok(()));
        assert_eq!(
            Tolerance::unlimited().check(signed, at(u64::from(u32::MAX))),
            Ok(())
        );
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
