//! An HMAC in a header, described by data.

use std::borrow::Cow;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use serde_json::Value;

use super::encoding::{Encoding, PresentedMac};
use super::key::{Derivation, Key};
use super::mac::{ExpectedMac, Hash, MacBuilder};
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use super::signed_content::{Part, SignedContent, Values};
use super::timestamp::{TimeFormat, TimeUnit, to_unix_time};
use super::{first_value, only_value};
use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::{Secret, SecretError, Secrets};

/// An HMAC in a header, described by data: HMAC-SHA256, unless [`hash`](Self::hash) says otherwise.
///
/// | the header's value | how to describe it |
/// |---|---|
/// | `<hex>` | `Hmac::hex(header)` |
/// | `sha256=<hex>` | `Hmac::hex(header).prefix("sha256=")` |
/// | `<base64>` | `Hmac::base64(header)` |
/// | `v1=<hex>,v1=<hex>` | `Hmac::hex(header).prefix("v1=").separator(",")` |
/// | `t=<time>,v1=<hex>,v1=<hex>` | `Hmac::hex(header).prefix("v1=").separator(",").timestamp_field("t=")` |
/// | `<time>,<hex>,<hex>` | `Hmac::hex(header).separator(",").timestamp_field("")` |
///
/// By default the raw body is signed. With a timestamp, `{timestamp}.{body}` is signed.
/// [`signed`](Self::signed) sets any other content. Times are Unix times in whole seconds, or in
/// milliseconds ([`timestamp_in_milliseconds`](Self::timestamp_in_milliseconds)), or dates
/// ([`timestamp_in_rfc_3339`](Self::timestamp_in_rfc_3339)). Hexadecimal digits are lower-case,
/// base64 is the standard alphabet with padding, and nothing is trimmed, as in most of the
/// providers' SDKs; [`encoding`](Self::encoding) sets another one.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::signature::{Hmac, SignedContent};
///
/// // Slack: `X-Slack-Signature: v0=<hex>` over `v0:<X-Slack-Request-Timestamp>:<body>`
/// let slack = Hmac::hex(HeaderName::from_static("x-slack-signature"))
///     .prefix("v0=")
///     .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
///     .signed(SignedContent::new().text("v0:").timestamp().text(":").body());
/// ```
#[derive(Clone, Debug)]
pub struct Hmac {
    place: Place,
    hash: Hash,
    key: Derivation,
    encoding: Encoding,
    prefix: Cow<'static, str>,
    prefix_is_optional: bool,
    /// Between the items of a list. Empty: the value is one item.
    separator: Cow<'static, str>,
    /// White space around items is skipped.
    trimmed: bool,
    /// Between lists. Empty: the value is one list.
    list_separator: Cow<'static, str>,
    timestamp: Option<TimestampSource>,
    time_format: TimeFormat,
    id: Option<HeaderName>,
    content: SignedContent,
    signs_body: bool,
    /// The content has the URL.
    signs_url: bool,
    /// The content has the path, or anything of the query.
    signs_path: bool,
    /// Those whose values are signed.
    signed_headers: Vec<HeaderName>,
    required_headers: Vec<(HeaderName, HeaderValue)>,
}

/// Where the signatures are.
#[derive(Clone, Debug)]
enum Place {
    /// The first one that is present, which must be there once.
    First(Vec<HeaderName>),
    /// All that are present, and each as often as it is.
    Every(Vec<HeaderName>),
    /// All that are this name, a hyphen and a number.
    Numbered(HeaderName),
}

#[derive(Clone, Debug)]
enum TimestampSource {
    Header(HeaderName),
    /// The item of the signature header with this prefix or, if it is empty, the first item.
    Field(Cow<'static, str>),
    /// In the JSON body.
    Json {
        path: JsonPath,
        reader: Reader,
    },
}

/// With more of them, a sender could have a large body hashed over and over.
const MAX_LISTS: usize = 8;

impl Hmac {
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
            .separator(",")
            .timestamp_field("t=")
    }

    fn new(header: HeaderName, encoding: Encoding) -> Self {
        Self {
            place: Place::First(vec![header]),
            hash: Hash::Sha256,
            key: Derivation::By(Key::Raw),
            encoding,
            prefix: Cow::Borrowed(""),
            prefix_is_optional: false,
            separator: Cow::Borrowed(""),
            trimmed: false,
            list_separator: Cow::Borrowed(""),
            timestamp: None,
            time_format: TimeFormat::Unix(TimeUnit::Seconds),
            id: None,
            content: SignedContent::new().body(),
            signs_body: true,
            signs_url: false,
            signs_path: false,
            signed_headers: Vec::new(),
            required_headers: Vec::new(),
        }
    }

    /// The hash function. Default: [`Hash::Sha256`].
    #[must_use]
    pub fn hash(mut self, hash: Hash) -> Self {
        self.hash = hash;
        self
    }

    /// How the key is made of the secret. Default: [`Key::Raw`].
    #[must_use]
    pub fn key(self, key: Key) -> Self {
        self.derive_key(Derivation::By(key))
    }

    /// How the key is made of the secret, in one of the ways that only presets need.
    #[must_use]
    pub(in crate::provider) fn derive_key(mut self, key: Derivation) -> Self {
        self.key = key;
        self
    }

    /// How the signature is written.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Another name for the signature header, used if those named before are absent.
    #[must_use]
    pub fn or_header(mut self, header: HeaderName) -> Self {
        self.place = match self.place {
            Place::First(mut headers) => {
                headers.push(header);
                Place::First(headers)
            }
            place => place,
        };
        self
    }

    /// A further signature header, such as that of a second key. One matching signature in any of
    /// them is enough.
    #[must_use]
    pub fn and_header(mut self, header: HeaderName) -> Self {
        self.place = match self.place {
            Place::First(mut headers) | Place::Every(mut headers) => {
                headers.push(header);
                Place::Every(headers)
            }
            place => place,
        };
        self
    }

    /// The signature header may be repeated, and one matching signature is enough. Otherwise a
    /// repeated header is malformed.
    #[must_use]
    pub(in crate::provider) fn repeatable(mut self) -> Self {
        self.place = match self.place {
            Place::First(headers) => Place::Every(headers),
            place => place,
        };
        self
    }

    /// There is a header for each key, whose name is that of the signature header, a hyphen and a
    /// number. One matching signature is enough.
    #[must_use]
    pub(in crate::provider) fn numbered(mut self) -> Self {
        self.place = match self.place {
            Place::First(headers) | Place::Every(headers) => match headers.into_iter().next() {
                Some(header) => Place::Numbered(header),
                None => Place::Every(Vec::new()),
            },
            place => place,
        };
        self
    }

    /// A header that must be there once, with this value: the version of the scheme, for example.
    #[must_use]
    pub(in crate::provider) fn required_header(
        mut self,
        header: HeaderName,
        value: HeaderValue,
    ) -> Self {
        self.required_headers.push((header, value));
        self
    }

    /// The text before each signature, such as `sha256=`. Default: none.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The text that may be before each signature.
    #[must_use]
    pub(in crate::provider) fn optional_prefix(
        mut self,
        prefix: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.prefix_is_optional = true;
        self.prefix(prefix)
    }

    /// The header is a list with this separator. Items without the prefix are skipped, and one
    /// matching signature is enough. Default: the header is one signature.
    #[must_use]
    pub fn separator(mut self, separator: impl Into<Cow<'static, str>>) -> Self {
        self.separator = separator.into();
        self
    }

    /// White space around the items of the list is skipped. Default: it is not, as in most SDKs.
    #[must_use]
    pub(in crate::provider) fn trimmed(mut self) -> Self {
        self.trimmed = true;
        self
    }

    /// The header has several lists, with this separator, each with a timestamp and signatures of
    /// its own. At most eight are looked at. Default: the header is one list.
    #[must_use]
    pub(in crate::provider) fn list_separator(
        mut self,
        separator: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.list_separator = separator.into();
        self
    }

    /// The time of signing is the item of the signature header with this prefix, such as `t=`. With
    /// an empty prefix it is the first item. The signed content becomes `{timestamp}.{body}`.
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

    /// The time of signing is in the JSON body. The signed content becomes the body alone. A body
    /// without a time is rejected.
    #[must_use]
    pub fn timestamp_json(mut self, path: JsonPath) -> Self {
        self.timestamp = Some(TimestampSource::Json {
            reader: Reader::new([&path]),
            path,
        });
        self.with_content(SignedContent::new().body())
    }

    /// Times are Unix times in milliseconds. Default: in seconds.
    #[must_use]
    pub fn timestamp_in_milliseconds(mut self) -> Self {
        self.time_format = TimeFormat::Unix(TimeUnit::Milliseconds);
        self
    }

    /// Times are Unix times in seconds or, with more than 11 digits, in milliseconds: for providers
    /// that send both.
    #[must_use]
    pub(in crate::provider) fn timestamp_in_seconds_or_milliseconds(mut self) -> Self {
        self.time_format = TimeFormat::UnixOfEitherUnit;
        self
    }

    /// Times are dates such as `2023-11-14T22:13:20.123Z`. What is signed is the text as it was
    /// sent. Default: Unix times.
    #[must_use]
    pub fn timestamp_in_rfc_3339(mut self) -> Self {
        self.time_format = TimeFormat::Rfc3339;
        self
    }

    fn timestamp(mut self, source: TimestampSource) -> Self {
        self.timestamp = Some(source);
        self.with_content(SignedContent::new().timestamp().text(".").body())
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
    pub fn signed(self, content: SignedContent) -> Self {
        assert!(
            content.has(&Part::Body),
            "the signed content leaves out the body"
        );
        self.signed_parts(content)
    }

    /// What the signature covers, if that is **not the body**: anyone who has captured one request
    /// can then send any body with its signature.
    ///
    /// # Panics
    ///
    /// If the content leaves out a timestamp in a header; or if it has a timestamp or an id whose
    /// place was not named.
    #[must_use]
    pub fn signed_without_body(self, content: SignedContent) -> Self {
        self.signed_parts(content)
    }

    fn signed_parts(self, content: SignedContent) -> Self {
        let has_timestamp = match self.timestamp {
            None | Some(TimestampSource::Json { .. }) => false,
            Some(TimestampSource::Header(_) | TimestampSource::Field(_)) => true,
        };
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
        self.with_content(content)
    }

    fn with_content(mut self, content: SignedContent) -> Self {
        self.signed_headers = content.headers();
        if content.has(&Part::Id) {
            self.signed_headers.extend(self.id.clone());
        }
        self.signs_body = content.has(&Part::Body);
        self.signs_url = content.has(&Part::Url);
        self.signs_path = content.has_uri();
        self.content = content;
        self
    }

    /// The signatures of a request, as they are written, and the name of their header.
    fn signatures<'a>(&'a self, headers: &'a HeaderMap) -> Result<Signatures<'a>, SignatureError> {
        let every = |named: Vec<(&'a HeaderName, &'a HeaderValue)>, missing: &'a HeaderName| {
            let (name, _) = *named
                .first()
                .ok_or_else(|| SignatureError::MissingHeader(missing.clone()))?;
            let texts = named.into_iter().map(|(name, value)| {
                let malformed = |_| SignatureError::MalformedHeader(name.clone());
                value.to_str().map_err(malformed)
            });
            Ok(Signatures {
                name,
                texts: Texts::Several(texts.collect::<Result<_, _>>()?),
            })
        };
        match &self.place {
            Place::First(names) => {
                let (name, text) = match &**names {
                    [name] => (name, only_value(headers, name)?),
                    names => first_value(headers, names)?,
                };
                Ok(Signatures {
                    name,
                    texts: Texts::One(text),
                })
            }
            Place::Every(names) => {
                let values = |name| headers.get_all(name).iter().map(move |value| (name, value));
                let first = names.first().ok_or(SignatureError::NoMatch)?;
                every(names.iter().flat_map(values).collect(), first)
            }
            Place::Numbered(name) => {
                let is_numbered = |(other, _): &(&HeaderName, _)| {
                    let number = other.as_str().strip_prefix(name.as_str());
                    number
                        .and_then(|rest| rest.strip_prefix('-'))
                        .is_some_and(|number| {
                            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                        })
                };
                every(headers.iter().filter(is_numbered).collect(), name)
            }
        }
    }

    fn items<'a>(&'a self, list: &'a str) -> Items<'a> {
        Items {
            rest: Some(list),
            separator: &self.separator,
            trimmed: self.trimmed,
        }
    }

    fn lists<'a>(&'a self, signatures: &'a Signatures<'a>) -> impl Iterator<Item = &'a str> {
        let lists = signatures.texts.iter().flat_map(|text| Items {
            rest: Some(text),
            separator: &self.list_separator,
            trimmed: false,
        });
        lists.take(match self.timestamp {
            Some(TimestampSource::Field(_)) => MAX_LISTS,
            _ => usize::MAX,
        })
    }

    /// The well-formed signatures in a list.
    fn candidates<'a>(&'a self, list: &'a str) -> impl Iterator<Item = PresentedMac> + 'a {
        let mut items = self.items(list);
        if let Some(TimestampSource::Field(prefix)) = &self.timestamp
            && prefix.is_empty()
        {
            items.next();
        }
        items.filter_map(|item| {
            let signature = match item.strip_prefix(&*self.prefix) {
                Some(signature) => signature,
                None if self.prefix_is_optional => item,
                None => return None,
            };
            self.encoding.decode(signature, self.hash.len())
        })
    }

    /// The timestamp in a header of its own.
    fn header_time<'a>(&self, headers: &'a HeaderMap) -> Result<Option<Time<'a>>, SignatureError> {
        let Some(TimestampSource::Header(name)) = &self.timestamp else {
            return Ok(None);
        };
        let time = self.time(only_value(headers, name)?);
        time.map(Some)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))
    }

    /// The timestamp in a list.
    fn list_time<'a>(
        &'a self,
        signatures: &Signatures<'_>,
        list: &'a str,
    ) -> Result<Option<Time<'a>>, SignatureError> {
        let Some(TimestampSource::Field(prefix)) = &self.timestamp else {
            return Ok(None);
        };
        let mut items = self.items(list);
        let text = if prefix.is_empty() {
            items.next()
        } else {
            let mut found = items.filter_map(|item| item.strip_prefix(&**prefix));
            // SDKs differ in which of two timestamps counts.
            found.next().filter(|_| found.next().is_none())
        };
        text.and_then(|text| self.time(text))
            .map(Some)
            .ok_or_else(|| signatures.malformed())
    }

    fn time<'a>(&self, text: &'a str) -> Option<Time<'a>> {
        let time = self.time_format.parse(text)?;
        Some(Time { text, time })
    }

    /// The time in an authentic body.
    fn body_time(&self, body: &[u8]) -> Result<Option<SystemTime>, SignatureError> {
        let Some(TimestampSource::Json { reader, .. }) = &self.timestamp else {
            return Ok(None);
        };
        let found = reader.read(body).ok().and_then(|mut matches| matches.pop());
        match found {
            Some(Match::Text(text)) => self
                .time_format
                .parse(&text)
                .map(Some)
                .ok_or(SignatureError::NoTimestamp),
            Some(Match::Nothing | Match::Other) | None => Err(SignatureError::NoTimestamp),
        }
    }

    fn check_required(&self, headers: &HeaderMap) -> Result<(), SignatureError> {
        for (name, required) in &self.required_headers {
            if only_value(headers, name)?.as_bytes() != required.as_bytes() {
                return Err(SignatureError::MalformedHeader(name.clone()));
            }
        }
        Ok(())
    }

    fn mac(&self, key: &[u8], values: &Values<'_>) -> Result<ExpectedMac, SignatureError> {
        let mut mac = MacBuilder::new(self.hash, key);
        self.content.feed(values, &mut |part| mac.update(part))?;
        Ok(mac.finish())
    }

    fn id<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, SignatureError> {
        match &self.id {
            Some(name) => only_value(headers, name),
            None => Ok(""),
        }
    }
}

impl SignatureScheme for Hmac {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.check_required(&head.headers)?;
        self.header_time(&head.headers)?;
        self.id(&head.headers)?;
        let signatures = self.signatures(&head.headers)?;
        let mut lists = self.lists(&signatures);
        if !lists.any(|list| self.candidates(list).next().is_some()) {
            return Err(signatures.malformed());
        }
        for list in self.lists(&signatures) {
            self.list_time(&signatures, list)?;
        }
        Ok(())
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let headers = request.headers();
        self.check_required(headers)?;
        let signatures = self.signatures(headers)?;
        let header_time = self.header_time(headers)?;
        let url = match self.signs_url {
            true => request.url()?,
            false => String::new(),
        };
        let values = Values {
            timestamp: header_time.map_or("", |time| time.text),
            id: self.id(headers)?,
            body: request.body(),
            method: request.method(),
            headers,
            path_and_query: match self.signs_path {
                true => request.path_and_query(),
                false => "",
            },
            url: &url,
        };
        let mut is_well_formed = false;
        let mut unusable = false;
        for secret in secrets.iter() {
            let Some(key) = self.key.of(secret) else {
                unusable = true;
                continue;
            };
            let mut expected = None;
            for list in self.lists(&signatures) {
                let list_time = self.list_time(&signatures, list)?;
                let mac = match (list_time, &expected) {
                    (None, Some(mac)) => mac,
                    (Some(Time { text, .. }), _) => {
                        let timestamp = text;
                        let values = Values {
                            timestamp,
                            ..values
                        };
                        expected.insert(self.mac(&key, &values)?)
                    }
                    (None, None) => expected.insert(self.mac(&key, &values)?),
                };
                for presented in self.candidates(list) {
                    is_well_formed = true;
                    if mac.matches(presented.as_bytes()) {
                        let time = list_time.or(header_time).map(|time| time.time);
                        let time = match time {
                            Some(time) => Some(time),
                            None => self.body_time(request.body())?,
                        };
                        return Ok(time.map_or_else(Signed::new, |time| Signed::new().at(time)));
                    }
                }
            }
        }
        Err(if unusable {
            SignatureError::UnusableSecret
        } else if is_well_formed {
            SignatureError::NoMatch
        } else {
            signatures.malformed()
        })
    }

    fn signed_headers(&self) -> &[HeaderName] {
        &self.signed_headers
    }

    fn signs_body(&self) -> bool {
        self.signs_body
    }

    fn signs_url(&self) -> bool {
        self.signs_url
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.key.check(secret)
    }

    fn signs_time(&self) -> bool {
        self.timestamp.is_some()
    }

    fn description(&self) -> Cow<'static, str> {
        let place = match &self.place {
            Place::First(names) | Place::Every(names) => {
                names.first().map_or("", HeaderName::as_str)
            }
            Place::Numbered(name) => name.as_str(),
        };
        let (hash, encoding) = (self.hash.name(), self.encoding.name());
        format!("HMAC-{hash} in {encoding}, `{place}`").into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        for (name, value) in &self.required_headers {
            request.insert_header(name.clone(), value)?;
        }
        let mut time = self.time_format.format(request.time());
        if let Some(TimestampSource::Header(name)) = &self.timestamp {
            // A text of the same time stays: a date can be written in many ways.
            match only_value(request.headers(), name) {
                Ok(text) if self.time_format.parse(text) == Some(request.time()) => {
                    time = text.to_owned();
                }
                Ok(_) | Err(_) => request.insert_header(name.clone(), &time)?,
            }
        }
        if let Some(TimestampSource::Json { path, .. }) = &self.timestamp
            && self.body_time(request.body()).ok().flatten() != self.time_format.parse(&time)
        {
            self.write_body_time(path, &time, request)?;
        }
        let key = self
            .key
            .of(secret)
            .ok_or(SignError::new("the secret is not one that signs"))?;
        let url = match self.signs_url {
            true => request.url()?,
            false => String::new(),
        };
        let values = Values {
            timestamp: &time,
            id: self
                .id(request.headers())
                .map_err(|_| SignError::new("the header with the signed id is missing"))?,
            body: request.body(),
            method: request.method(),
            headers: request.headers(),
            path_and_query: request.path_and_query(),
            url: &url,
        };
        let mac = self
            .mac(&key, &values)
            .map_err(|_| SignError::new("the request lacks a part that is signed"))?;
        let mut value = String::new();
        if let Some(TimestampSource::Field(prefix)) = &self.timestamp {
            value.extend([prefix, &*time, &self.separator]);
        }
        value.push_str(&self.prefix);
        value.push_str(&self.encoding.encode(&mac.into_bytes()));
        let name = match &self.place {
            Place::First(names) | Place::Every(names) => names.first().cloned(),
            Place::Numbered(name) => format!("{name}-1").parse().ok(),
        };
        let name = name.ok_or(SignError::new("the scheme names no header"))?;
        request.insert_header(name, value)
    }
}

impl Hmac {
    fn write_body_time(
        &self,
        path: &JsonPath,
        time: &str,
        request: &mut UnsignedRequest,
    ) -> Result<(), SignError> {
        let unit = match self.time_format {
            TimeFormat::Unix(unit) => Some(unit),
            TimeFormat::UnixOfEitherUnit => Some(TimeUnit::Seconds),
            TimeFormat::Rfc3339 => None,
        };
        let time = match unit {
            Some(unit) => u64::try_from(to_unix_time(request.time(), unit))
                .map(Value::from)
                .map_err(|_| SignError::new("the time is too late"))?,
            None => Value::from(time),
        };
        let mut body = serde_json::from_slice(request.body())
            .map_err(|_| SignError::new("the body is not JSON, but its time is signed"))?;
        if !path.write(&mut body, time) {
            return Err(SignError::new("the body has no place for the signed time"));
        }
        request.set_body(body.to_string());
        Ok(())
    }
}

/// A timestamp: its text, which is signed, and the time.
#[derive(Clone, Copy)]
struct Time<'a> {
    text: &'a str,
    time: SystemTime,
}

/// The signatures as they are written, and the header that has them.
struct Signatures<'a> {
    name: &'a HeaderName,
    texts: Texts<'a>,
}

enum Texts<'a> {
    One(&'a str),
    Several(Vec<&'a str>),
}

impl Signatures<'_> {
    fn malformed(&self) -> SignatureError {
        SignatureError::MalformedHeader(self.name.clone())
    }
}

impl Texts<'_> {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        };
        texts.iter().copied()
    }
}

/// The items of a list.
struct Items<'a> {
    rest: Option<&'a str>,
    separator: &'a str,
    trimmed: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let split = match self.separator.as_bytes() {
            [] => None,
            // Much faster than any text.
            [byte] if byte.is_ascii() => rest.split_once(char::from(*byte)),
            _ => rest.split_once(self.separator),
        };
        let item = match split {
            Some((item, rest)) => {
                self.rest = Some(rest);
                item
            }
            None => rest,
        };
        Some(if self.trimmed { item.trim() } else { item })
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
        let scheme = Hmac::hex(SIGNATURE).timestamp_header(TIME).id_header(ID);
        assert!(scheme.signed_headers().is_empty());
        let scheme = scheme.signed(content().id().timestamp().body());
        assert_eq!(scheme.signed_headers(), [ID]);
        let scheme = Hmac::hex(SIGNATURE).signed(content().header(ID).body());
        assert_eq!(scheme.signed_headers(), [ID]);
    }

    #[test]
    #[should_panic(expected = "leaves out the body")]
    fn signed_content_without_the_body_is_refused() {
        let _ = Hmac::hex(SIGNATURE).signed(content().text("body"));
    }

    #[test]
    #[should_panic(expected = "has a timestamp, but its header was not named")]
    fn signed_content_with_an_unknown_timestamp_is_refused() {
        let _ = Hmac::hex(SIGNATURE).signed(content().timestamp().body());
    }

    #[test]
    #[should_panic(expected = "leaves out the timestamp")]
    fn signed_content_without_the_timestamp_is_refused() {
        let scheme = Hmac::hex(SIGNATURE).timestamp_header(TIME);
        let _ = scheme.signed(content().body());
    }

    #[test]
    #[should_panic(expected = "has an id, but its header was not named")]
    fn signed_content_with_an_unknown_id_is_refused() {
        let _ = Hmac::hex(SIGNATURE).signed(content().id().body());
    }

    #[test]
    fn a_list_is_split_at_its_separator() {
        let items = |list, separator| -> Vec<&str> {
            let rest = Some(list);
            let trimmed = false;
            Items {
                rest,
                separator,
                trimmed,
            }
            .collect()
        };
        assert_eq!(items("a,b", ""), ["a,b"]);
        assert_eq!(items("a,b,,", ","), ["a", "b", "", ""]);
        assert_eq!(items("a, b,c", ", "), ["a", "b,c"]);
        assert_eq!(items("", ","), [""]);
        assert_eq!(items("é;é", ";"), ["é", "é"]);
    }
}
