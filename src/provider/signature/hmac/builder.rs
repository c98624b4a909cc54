//! The builder of an HMAC: its place, its encoding, and what it covers.

use std::borrow::Cow;

use http::header::{HeaderName, HeaderValue};

use crate::provider::json_path::{JsonPath, Reader};
use crate::provider::signature::key::Derivation;
use crate::provider::signature::signed_content::Part;
use crate::provider::signature::timestamp::{TimeFormat, TimeUnit};
use crate::provider::signature::{Encoding, Hash, Key, SignedContent};
use crate::provider::{Secret, SecretError};

/// A configurable scheme for an HMAC in a header: HMAC-SHA256, unless [`hash`](Self::hash) sets another hash function.
///
/// | the header's value | how to describe it |
/// |---|---|
/// | `<hex>` | `Hmac::hex(header)` |
/// | `sha256=<hex>` | `Hmac::hex(header).prefix("sha256=")` |
/// | `<base64>` | `Hmac::base64(header)` |
/// | `v1=<hex>,v1=<hex>` | `Hmac::hex(header).prefix("v1=").separator(",")` |
/// | `v0=<hex>,<hex>` | `Hmac::hex(header).first_prefix("v0=").separator(",")` |
/// | `t=<time>,v1=<hex>,v1=<hex>` | `Hmac::hex(header).prefix("v1=").separator(",").timestamp_field("t=")` |
/// | `<time>,<hex>,<hex>` | `Hmac::hex(header).separator(",").timestamp_field("")` |
///
/// By default, the raw body is signed. With a timestamp, `{timestamp}.{body}` is signed. [`signed`](Self::signed)
/// sets any other content. Times are Unix times in whole seconds, Unix times in milliseconds
/// ([`timestamp_in_milliseconds`](Self::timestamp_in_milliseconds)), or dates
/// ([`timestamp_in_rfc_3339`](Self::timestamp_in_rfc_3339)).
///
/// As in most of the providers' SDKs, hexadecimal digits are lower-case, base64 uses the standard alphabet with
/// padding, and nothing is trimmed. [`encoding`](Self::encoding) sets another encoding.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::provider::signature::{Hmac, SignedContent};
///
/// // Slack: `X-Slack-Signature: v0=<hex>` over `v0:<X-Slack-Request-Timestamp>:<body>`
/// let slack = Hmac::hex(HeaderName::from_static("x-slack-signature"))
///     .prefix("v0=")
///     .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
///     .signed(SignedContent::new().text("v0:").timestamp().text(":").body());
/// ```
#[derive(Clone, Debug)]
pub struct Hmac {
    pub(super) place: Place,
    pub(super) hash: Hash,
    pub(super) key: Derivation,
    pub(super) encoding: Encoding,
    pub(super) prefix: Cow<'static, str>,
    pub(super) prefix_is_optional: bool,
    /// Whether only the first signature has the prefix.
    pub(super) prefix_is_once: bool,
    /// The text between the items of a list. If it is empty, the header's value is one item.
    pub(super) separator: Cow<'static, str>,
    /// Whether white space around items is skipped.
    pub(super) trimmed: bool,
    /// The text between lists. If it is empty, the header's value is one list.
    pub(super) list_separator: Cow<'static, str>,
    pub(super) timestamp: Option<TimestampSource>,
    pub(super) time_format: TimeFormat,
    pub(super) id: Option<HeaderName>,
    pub(super) content: SignedContent,
    pub(super) signs_body: bool,
    /// Whether the signed content includes the URL.
    pub(super) signs_url: bool,
    /// Whether the signed content includes the path, or a part of the query.
    pub(super) signs_path: bool,
    /// The headers whose values are signed.
    pub(super) signed_headers: Vec<HeaderName>,
    pub(super) required_headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) secret_check: Option<SecretCheck>,
}

/// Checks that a secret is of the kind that the provider signs with.
pub(crate) type SecretCheck = fn(&Secret) -> Result<(), SecretError>;

/// Where the signatures are.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In the first of these headers that is present. That header must not be repeated.
    First(Vec<HeaderName>),
    /// In all of these headers that are present, however often each is repeated.
    Every(Vec<HeaderName>),
    /// In all headers whose name is this name, a hyphen and a number.
    Numbered(HeaderName),
}

#[derive(Clone, Debug)]
pub(super) enum TimestampSource {
    Header(HeaderName),
    /// The item of the signature header with this prefix or, if the prefix is empty, the first item.
    Field(Cow<'static, str>),
    /// In the JSON body.
    Json {
        path: JsonPath,
        reader: Reader,
    },
}

impl Hmac {
    /// A signature in `header`, as lower-case hexadecimal digits.
    pub fn hex(header: HeaderName) -> Self {
        Self::new(header, Encoding::Hex)
    }

    /// A signature in `header`, in base64 (RFC 4648, section 4, padded).
    pub fn base64(header: HeaderName) -> Self {
        Self::new(header, Encoding::Base64)
    }

    /// `t=<time>,v1=<hex>`, as Stripe writes it.
    pub(crate) fn timestamped(header: HeaderName) -> Self {
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
            prefix_is_once: false,
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
            secret_check: None,
        }
    }

    /// The hash function. Default: [`Hash::Sha256`].
    #[must_use]
    pub fn hash(mut self, hash: Hash) -> Self {
        self.hash = hash;
        self
    }

    /// Refuses secrets that the provider uses for another purpose.
    #[must_use]
    pub(crate) fn secret_check(mut self, check: SecretCheck) -> Self {
        self.secret_check = Some(check);
        self
    }

    /// How the key is made from the secret. Default: [`Key::Raw`].
    #[must_use]
    pub fn key(self, key: Key) -> Self {
        self.derive_key(Derivation::By(key))
    }

    /// How the key is made from the secret, in a way that only presets need.
    #[must_use]
    pub(crate) fn derive_key(mut self, key: Derivation) -> Self {
        self.key = key;
        self
    }

    /// How the signature is written.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Adds another name for the signature header. A header with this name is read if the headers that were set before
    /// are absent.
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

    /// Adds a further signature header, such as the header for a second key. One matching signature in any of the
    /// headers is enough.
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

    /// Allows the signature header to be repeated. One matching signature is enough. Without this setting, a
    /// repeated header is malformed.
    #[must_use]
    pub(crate) fn repeatable(mut self) -> Self {
        self.place = match self.place {
            Place::First(headers) => Place::Every(headers),
            place => place,
        };
        self
    }

    /// Expects one header for each key. Each is named like the signature header, followed by a hyphen and a number. One
    /// matching signature is enough.
    #[must_use]
    pub(crate) fn numbered(mut self) -> Self {
        self.place = match self.place {
            Place::First(headers) | Place::Every(headers) => match headers.into_iter().next() {
                Some(header) => Place::Numbered(header),
                None => Place::Every(Vec::new()),
            },
            place => place,
        };
        self
    }

    /// Requires a header that occurs once and has this value, such as the version of the scheme.
    #[must_use]
    pub(crate) fn required_header(mut self, header: HeaderName, value: HeaderValue) -> Self {
        self.required_headers.push((header, value));
        self
    }

    /// The text before each signature, such as `sha256=`. Default: none.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The text before the first signature of a list, such as the `v0=` of `v0=<hex>,<hex>`. The other signatures
    /// have no prefix. Default: each signature has the [`prefix`](Self::prefix).
    #[must_use]
    pub fn first_prefix(mut self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.prefix_is_once = true;
        self.prefix(prefix)
    }

    /// The text that may precede each signature.
    #[must_use]
    pub(crate) fn optional_prefix(mut self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.prefix_is_optional = true;
        self.prefix(prefix)
    }

    /// Makes the header a list with this separator. Items without the prefix are skipped, and one matching
    /// signature is enough. Default: the header is one signature.
    #[must_use]
    pub fn separator(mut self, separator: impl Into<Cow<'static, str>>) -> Self {
        self.separator = separator.into();
        self
    }

    /// Skips white space around the items of the list. Default: it is not skipped, as in most SDKs.
    #[must_use]
    pub(crate) fn trimmed(mut self) -> Self {
        self.trimmed = true;
        self
    }

    /// Splits the header into several lists at this separator, each with its own timestamp and signatures. At most
    /// eight lists are checked. Default: the header is one list.
    #[must_use]
    pub(crate) fn list_separator(mut self, separator: impl Into<Cow<'static, str>>) -> Self {
        self.list_separator = separator.into();
        self
    }

    /// The time of signing is the item of the signature header with this prefix, such as `t=`. If the prefix is
    /// empty, it is the first item. The signed content becomes `{timestamp}.{body}`.
    #[must_use]
    pub fn timestamp_field(self, prefix: impl Into<Cow<'static, str>>) -> Self {
        self.timestamp(TimestampSource::Field(prefix.into()))
    }

    /// The time of signing is in a separate header. The signed content becomes `{timestamp}.{body}`.
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

    /// Times are Unix times in milliseconds. Default: seconds.
    #[must_use]
    pub fn timestamp_in_milliseconds(mut self) -> Self {
        self.time_format = TimeFormat::Unix(TimeUnit::Milliseconds);
        self
    }

    /// Times are Unix times in seconds or, if they have more than 11 digits, in milliseconds. This is for providers
    /// that send both.
    #[must_use]
    pub(crate) fn timestamp_in_seconds_or_milliseconds(mut self) -> Self {
        self.time_format = TimeFormat::UnixOfEitherUnit;
        self
    }

    /// Times are dates such as `2023-11-14T22:13:20.123Z`. The signature covers the text as it was sent. Default: Unix
    /// times.
    #[must_use]
    pub fn timestamp_in_rfc_3339(mut self) -> Self {
        self.time_format = TimeFormat::Rfc3339;
        self
    }

    fn timestamp(mut self, source: TimestampSource) -> Self {
        self.timestamp = Some(source);
        self.with_content(SignedContent::new().timestamp().text(".").body())
    }

    /// The header that carries the delivery id, for [`SignedContent::id`].
    #[must_use]
    pub fn id_header(mut self, header: HeaderName) -> Self {
        self.id = Some(header);
        self
    }

    /// Sets what the signature covers. Call it after the methods that say where the timestamp and the id are.
    ///
    /// # Panics
    ///
    /// If the content includes neither the body nor its digest. Also if it leaves out a timestamp that is in a header,
    /// or includes a timestamp or an id without a method that says where it is.
    #[must_use]
    pub fn signed(self, content: SignedContent) -> Self {
        assert!(content.has_body(), "the signed content leaves out the body");
        self.signed_parts(content)
    }

    /// Sets what the signature covers if it does **not cover the body**. Anyone who has captured one request can
    /// then send any body with its signature.
    ///
    /// # Panics
    ///
    /// If the content leaves out a timestamp that is in a header, or includes a timestamp or an id without a method
    /// that says where it is.
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
        self.signs_body = content.has_body();
        self.signs_url = content.has(&Part::Url);
        self.signs_path = content.has_uri();
        self.content = content;
        self
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
        assert!(scheme.signed_headers.is_empty());
        let scheme = scheme.signed(content().id().timestamp().body());
        assert_eq!(scheme.signed_headers, [ID]);
        let scheme = Hmac::hex(SIGNATURE).signed(content().header(ID).body());
        assert_eq!(scheme.signed_headers, [ID]);
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
}
