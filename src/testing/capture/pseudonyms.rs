//! `Pseudonyms`: replaces values of a request to make a capture. Whether a value stays depends on its name (`name.rs`)
//! and on its form (`text.rs`).

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Uri};
use serde_json::value::RawValue;

use super::json::{Value, read};
use super::name::Name;
use super::permutation::Permutation;
use super::text::{About, Texts};
use super::{Capture, CaptureError};
use crate::presets::by_name;
use crate::provider::Provider;

/// Headers whose names contain one of these words are never part of a capture, even if the caller
/// [keeps](Pseudonyms::keep) them.
const NEVER: [&str; 13] = [
    "api-key",
    "apikey",
    "auth",
    "cookie",
    "credential",
    "hmac",
    "jwt",
    "password",
    "secret",
    "session",
    "signature",
    "token",
    "traceparent",
];

/// The largest body that a capture can have, in bytes. Replacing the values of such a body takes a third of a second.
pub(crate) const MAX_BODY: usize = 2 * 1024 * 1024;

/// The deepest nesting, which is also the limit of `serde_json`.
const DEEPEST: usize = 128;

/// Makes captures of requests, without signatures and with pseudonyms for personal and secret values.
///
/// # What stays
///
/// In the path, `webhooks`, `hooks`, `api` and the like stay, and so do a version and the name of a preset. Of the
/// headers, the content type stays, and so do the headers with the delivery id, the event type or the version. The body
/// must be a JSON document or a form. All its members stay in their order, and these values stay:
///
/// - the event type, booleans, `null`, empty texts, and the commit hash of all zeros (which means "no commit" in git);
/// - a single word, if the name of its member ends in one of these words, or in one of them and `code`, as in
///   `currency_code`: `action`, `brand`, `country`, `currency`, `event`, `interval`, `kind`, `language`, `level`,
///   `locale`, `method`, `mode`, `object`, `reason`, `result`, `role`, `severity`, `state`, `status`, `timezone`,
///   `topic`, `type`, `unit`, `version`, `zone`; but a word that is capitalized like a personal name (`Ada`) stays only
///   if the name ends in `type`;
/// - a date with a time in 2010 or later, and a date without a time in 2015 or later, but never a date of birth;
/// - a number of up to seven digits, unless the name of its member, or of a member around it, suggests an identifier
///   (`id`, `number`, `code` and the like), a person (`customer`, `phone`) or a place (`zip`, `latitude`);
/// - a number in a text, if the member's name suggests an amount, a count or a version: `total_price`, `NumMedia`;
/// - a Unix time from 2010 to 2035, if the member's name suggests a time: `created`, `expires_at`.
///
/// Names are compared word by word, so `dateOfBirth`, `date_of_birth` and `Date-Of-Birth` are the same. A `value` gets
/// its meaning from its parent, so `{"total": {"value": 4200}}` stays. Any other `value`, `text`, `body`, `answer`,
/// `content` and the like is replaced, as in `{"name": "zip", "value": "94103"}`. In `answers`, each `type` stays.
///
/// Everything except the event type is replaced in `metadata`, `evidence` and `tax_id`, in members named `custom`, and
/// in members that describe a person, such as `date_of_birth`, `gender`, `health` and `salary`, unless the member is
/// [kept](Self::keep).
///
/// **Every other text or number is replaced**, word by word: a digit by a digit, a letter by a letter of the same case.
/// The same word gets the same pseudonym everywhere, and different words get different pseudonyms. Punctuation stays.
/// As a result, a UUID stays a UUID, a date stays a date, and ids still match each other. `evt_1NG8Du2eZvKYlo2C` and
/// `cs_test_a1B2c3D4e5F6g7` keep their prefix. Mail addresses, URLs, and hosts within a text end in `.example`. A phone
/// number starts with `+999`, or with `999` if it has no `+`. Nobody owns such addresses and numbers, so a test that
/// really sends a message reaches nobody. JSON inside a text, even if it is encoded in base64, follows the same rules.
/// A member name that looks like an id or an address is also replaced.
///
/// A phone number without `+` is recognized by the name of its member (`phone`, `msisdn`, `from`), by its scheme
/// (`tel:`), or by its form (`0151-2345678`, `(415) 555-0123`).
///
/// If your handler compares values that these rules would replace, such as `billing_scheme`, [keep](Self::keep) them by
/// name.
///
/// # What has no capture
///
/// There is no capture for a body that is compressed, larger than 2 MiB, or neither JSON nor a form, such as the JSON
/// Web Token of Wix and the multipart form of Dropbox Sign. There is also no capture if a text in the body has its own
/// signature, as with Apple, or is XML in base64, as with Braintree.
///
/// For some providers, a name must be [kept](Self::keep): `TopicArn` and `SigningCertURL` for AWS SNS, and the header
/// `x-event-type` for Coinbase and Hook0, because only the signature header names this header.
///
/// # The key
///
/// The pseudonyms are computed with a key, which is random for each `new`. To somebody without the key, a pseudonym,
/// even of a single letter, shows only its length, its alphabet, and which other pseudonyms are equal. **A capture is
/// pseudonymous, not anonymous**: amounts, times, countries and states stay, and together they may identify a person.
/// Read each capture before you pass it on, and [replace](Self::replace) the personal members that only your
/// application knows.
///
/// ```
/// use bytes::Bytes;
/// use http::Request;
/// use idempotent_webhook::testing::Pseudonyms;
/// use idempotent_webhook::{Secret, presets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stripe = presets::stripe(Secret::new("whsec_live")?);
/// let body = r#"{"id": "evt_1", "type": "invoice.paid", "data": {"object": {"email": "ada@example.com", "total": 4200}}}"#;
/// let request = Request::post("/webhooks/stripe")
///     .header("stripe-signature", "t=1,v1=00")
///     .body(Bytes::from(body))?;
/// let capture = Pseudonyms::new().capture(&stripe, &request)?;
/// assert_eq!(capture.replaced(), ["$.data.object.email", "$.id"]);
/// assert!(!capture.to_string().contains("ada"));
/// assert!(!capture.to_string().contains("signature"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "`capture` uses it"]
pub struct Pseudonyms {
    texts: Texts,
    kept: BTreeSet<String>,
    replaced: BTreeSet<String>,
}

impl Pseudonyms {
    /// Creates pseudonyms with a random key. All captures of this value and its clones use the same key.
    pub fn new() -> Self {
        Self::with(Permutation::random())
    }

    /// Creates pseudonyms with a given key, so that they are the same in another process or on another day. The key is
    /// as secret as the values that it hides: make it long and random.
    ///
    /// # Panics
    ///
    /// If the key is empty.
    pub fn with_key(key: impl AsRef<[u8]>) -> Self {
        let key = key.as_ref();
        assert!(!key.is_empty(), "the key of pseudonyms is empty");
        Self::with(Permutation::new(key))
    }

    fn with(permutation: Permutation) -> Self {
        Self {
            texts: Texts::new(permutation),
            kept: BTreeSet::new(),
            replaced: BTreeSet::new(),
        }
    }

    /// Keeps the value of a member unchanged, with all its contents. Give the name of the member, or its path as
    /// [`Capture::replaced`] lists it, such as `$.line_items[].sku`. In a form, give the name of a field. For a header,
    /// give its name in lower case.
    pub fn keep(mut self, name: impl Into<String>) -> Self {
        self.kept.insert(name.into());
        self
    }

    /// Replaces each text and number in a member, including values that would otherwise stay. Names are given as for
    /// [`keep`](Self::keep). If a named member is inside another named member, the rule for the inner one applies. If a
    /// member is both kept and replaced, it is replaced.
    pub fn replace(mut self, name: impl Into<String>) -> Self {
        self.replaced.insert(name.into());
        self
    }

    /// Makes a capture of a request from this provider. The request does not need to be authentic: the provider is used
    /// only for the headers and the event type.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] if the body cannot be read: it is compressed, not text, or neither JSON nor a form.
    pub fn capture(
        &self,
        provider: &Provider,
        request: &Request<Bytes>,
    ) -> Result<Capture, CaptureError> {
        let (head, body) = request.clone().into_parts();
        let identity = provider.identity();
        let sources = [identity.event_type(), identity.event_action()];
        let said = sources.into_iter().flatten();
        let event_type = said
            .filter_map(|source| source.read_alone(&head, &body).ok()?)
            .collect::<Vec<_>>();
        let mut headers = HeaderMap::new();
        for (name, value) in &head.headers {
            let is_identifying = provider.identifying_headers().any(|known| known == name);
            if is_identifying || *name == CONTENT_ENCODING || self.kept.contains(name.as_str()) {
                headers.append(name, value.clone());
            }
        }
        if let Some(value) = head.headers.get(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, value.clone());
        }
        let uri = provider.without_secrets(&head.uri.to_string());
        let uri = uri.parse().unwrap_or(head.uri);
        let mut received = Request::new(body);
        *received.method_mut() = head.method;
        *received.uri_mut() = uri;
        *received.headers_mut() = headers;
        let mut capture = self.write(&received, &event_type)?;
        // A name also counts as matched if the capture leaves out the header with this name.
        capture
            .unmatched
            .retain(|name| !head.headers.contains_key(name));
        let name = provider.name();
        // The name of a custom provider may be any text.
        capture.provider = HeaderValue::try_from(name).is_ok().then(|| name.to_owned());
        Ok(capture)
    }

    /// Makes a capture of a kept request, which is stored without a signature and without unneeded headers.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_kept(
        &self,
        request: &Request<Bytes>,
        event_type: Option<String>,
    ) -> Result<Capture, CaptureError> {
        self.write(request, event_type.as_slice())
    }

    fn write(
        &self,
        request: &Request<Bytes>,
        event_type: &[String],
    ) -> Result<Capture, CaptureError> {
        let mut writer = Writer {
            pseudonyms: self,
            event_type,
            found: BTreeSet::new(),
            matched: BTreeSet::new(),
            unreadable: None,
        };
        let uri = writer.uri(request.uri());
        let headers = writer.headers(request.headers());
        let body = writer.body(request.headers(), request.body())?;
        if let Some(reason) = writer.unreadable {
            return Err(CaptureError::new(reason));
        }
        let named = &self.kept | &self.replaced;
        Ok(Capture {
            method: request.method().clone(),
            uri,
            headers,
            body: body.into(),
            provider: None,
            remark: None,
            event_type: (!event_type.is_empty()).then(|| event_type.join(".")),
            replaced: writer.found.into_iter().collect(),
            unmatched: named.difference(&writer.matched).cloned().collect(),
        })
    }
}

impl Default for Pseudonyms {
    fn default() -> Self {
        Self::new()
    }
}

/// Does not show the key.
impl std::fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pseudonyms")
            .field("kept", &self.kept)
            .field("replaced", &self.replaced)
            .finish_non_exhaustive()
    }
}

/// What to do with a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Keep,
    Replace,
    /// Only the event type stays.
    ReplaceButEventType,
    /// Only the event type and the value of a member named `type` stay.
    ReplaceButTypes,
    /// Whether the value stays depends on its name and its form.
    Judge,
}

/// The place of a value in the request.
#[derive(Clone)]
struct Place {
    path: String,
    depth: usize,
    /// The name of the value's member, or of the closest member around it that says what the value is.
    name: Name,
    rule: Rule,
    /// Whether the names of the members around the value make it an identifier.
    is_identifying: bool,
    /// Whether a person has entered the value, so that it can be anything.
    is_given: bool,
    is_in_array: bool,
}

impl Place {
    fn root(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            depth: 0,
            name: Name::default(),
            rule: Rule::Judge,
            is_identifying: false,
            is_given: false,
            is_in_array: false,
        }
    }

    fn element(&self) -> Self {
        Self {
            path: format!("{}[]", self.path),
            depth: self.depth + 1,
            is_in_array: true,
            ..self.clone()
        }
    }

    /// The place of a member inside this value.
    fn member(&self, name: &str, path: String, rule: Rule) -> Self {
        let name = Name::new(name);
        Self {
            path,
            depth: self.depth + 1,
            rule,
            is_identifying: self.is_identifying || self.name.is_identifying(),
            is_given: name.is_given(),
            is_in_array: false,
            name: if name.is_wrapper() {
                self.name.clone()
            } else {
                name
            },
        }
    }

    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            is_identifying: self.is_identifying,
            is_given: self.is_given,
            is_in_array: self.is_in_array,
        }
    }
}

/// Writes one capture.
struct Writer<'a> {
    pseudonyms: &'a Pseudonyms,
    event_type: &'a [String],
    /// The places where something was replaced.
    found: BTreeSet<String>,
    /// The names to keep or replace that occur in the request.
    matched: BTreeSet<String>,
    /// The reason why no program could read a text after its replacement, if there is such a text.
    unreadable: Option<&'static str>,
}

impl Writer<'_> {
    fn headers(&mut self, received: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in received {
            // The content encoding is left out, because the body is written without one.
            let is_left_out =
                *name == CONTENT_ENCODING || NEVER.iter().any(|part| name.as_str().contains(part));
            if is_left_out {
                continue;
            }
            let written = match value.to_str() {
                Ok(text) if *name == CONTENT_TYPE => HeaderValue::try_from(text),
                Ok(text) => HeaderValue::try_from(self.header(name, text)),
                // A value that is not text cannot be replaced.
                Err(_) => continue,
            };
            if let Ok(value) = written {
                headers.append(name, value);
            }
        }
        headers
    }

    fn header(&mut self, name: &HeaderName, text: &str) -> String {
        let name = name.as_str();
        let rule = self.rule(name, name, Rule::Judge);
        let place = Place::root("").member(name, format!("header {name}"), rule);
        self.text(&place, text)
    }

    fn uri(&mut self, uri: &Uri) -> Uri {
        let mut written: Vec<_> = Vec::new();
        for segment in uri.path().split('/') {
            let digits = segment.bytes().filter(u8::is_ascii_digit).count();
            // Most routes consist of a word for their purpose and the provider's name. Other parts may name a tenant,
            // or may be secret.
            let is_of_route = [
                "", "api", "callback", "hook", "hooks", "webhook", "webhooks",
            ];
            let is_version = segment.len() <= 3 && segment.starts_with('v') && digits > 0;
            let stays = is_of_route.contains(&segment) || is_version || by_name(segment).is_ok();
            written.push(match stays {
                true => segment.to_owned(),
                false => {
                    self.found.insert("path".to_owned());
                    self.pseudonyms.texts.text(&Name::default(), segment)
                }
            });
        }
        let mut written = written.join("/");
        if let Some(query) = uri.query() {
            let place = Place::root("query");
            written = format!("{written}?{}", self.form(&place, query.as_bytes()));
        }
        // The replacements in a path and a query are valid in a URI.
        written.parse().unwrap_or_default()
    }

    fn body(&mut self, headers: &HeaderMap, body: &[u8]) -> Result<String, CaptureError> {
        if let Some(encoding) = headers.get(CONTENT_ENCODING)
            && encoding != "identity"
        {
            return Err(CaptureError::new("its body is compressed"));
        }
        if body.len() > MAX_BODY {
            return Err(CaptureError::new("its body is larger than 2 MiB"));
        }
        let text =
            std::str::from_utf8(body).map_err(|_| CaptureError::new("its body is not UTF-8"))?;
        // RFC 8259 allows parsers to skip a byte order mark.
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Ok(String::new());
        }
        if let Ok(value) = read(text) {
            let mut written = String::with_capacity(text.len());
            self.value(&Place::root("$"), &value, Some(0), &mut written)?;
            written.push('\n');
            return Ok(written);
        }
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|text| text.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        // A text without `=` is not a form: it would be read as the name of a field.
        if content_type.starts_with("application/x-www-form-urlencoded") && text.contains('=') {
            return Ok(self.form(&Place::root("$"), text.trim_end().as_bytes()));
        }
        Err(CaptureError::new("its body is neither JSON nor a form"))
    }

    fn form(&mut self, place: &Place, text: &[u8]) -> String {
        let mut written = form_urlencoded::Serializer::new(String::new());
        for pair in text.split(|byte| *byte == b'&') {
            // A part without `=` may be a token that has no name.
            let is_pair = pair.contains(&b'=');
            for (name, value) in form_urlencoded::parse(pair) {
                if is_pair {
                    let (name, place) = self.member(place, &name);
                    written.append_pair(&name, &self.text(&place, &value));
                } else {
                    let replaced = self.pseudonyms.texts.text(&Name::default(), &name);
                    self.note(place, &name, &replaced);
                    written.append_key_only(&replaced);
                }
            }
        }
        written.finish()
    }

    /// Writes a value, either indented on several lines or on one line.
    fn value(
        &mut self,
        place: &Place,
        value: &Value<'_>,
        indent: Option<usize>,
        written: &mut String,
    ) -> Result<(), CaptureError> {
        if place.depth > DEEPEST {
            return Err(CaptureError::new("its JSON is nested too deep"));
        }
        let deeper = indent.map(|indent| indent + 1);
        match value {
            Value::Literal(literal) => written.push_str(literal),
            Value::Number(number) => written.push_str(&self.number(place, number)),
            Value::Text(text) => written.push_str(&quoted(&self.text(place, text))),
            Value::Array(elements) if elements.is_empty() => written.push_str("[]"),
            Value::Object(members) if members.is_empty() => written.push_str("{}"),
            Value::Array(elements) => {
                written.push('[');
                for (i, element) in elements.iter().enumerate() {
                    next(i, deeper, written);
                    self.value(&place.element(), &read(element.get())?, deeper, written)?;
                }
                line(indent, written);
                written.push(']');
            }
            Value::Object(members) => {
                written.push('{');
                for (i, (name, member)) in members.iter().enumerate() {
                    next(i, deeper, written);
                    let (name, place) = self.member(place, name);
                    written.push_str(&quoted(&name));
                    written.push_str(if indent.is_some() { ": " } else { ":" });
                    self.value(&place, &read(member.get())?, deeper, written)?;
                }
                line(indent, written);
                written.push('}');
            }
        }
        Ok(())
    }

    /// The name of a member as it is written to the capture, and its place.
    fn member(&mut self, parent: &Place, name: &str) -> (String, Place) {
        let is_data = is_data(name);
        let step = match name {
            _ if is_data => ".*".to_owned(),
            _ if is_plain(name) => format!(".{name}"),
            _ => format!("['{name}']"),
        };
        let path = format!("{}{step}", parent.path);
        let rule = self.rule(name, &path, parent.rule);
        let place = parent.member(name, path, rule);
        if is_data && place.rule != Rule::Keep {
            self.found.insert(place.path.clone());
            let texts = &self.pseudonyms.texts;
            return (texts.text(&Name::default(), name), place);
        }
        (name.to_owned(), place)
    }

    fn rule(&mut self, name: &str, path: &str, inherited: Rule) -> Rule {
        let pseudonyms = self.pseudonyms;
        let mut names = |named: &BTreeSet<String>| {
            let given = [name, path].map(|one| named.get(one));
            self.matched.extend(given.into_iter().flatten().cloned());
            given.iter().any(Option::is_some)
        };
        let (is_replaced, is_kept) = (names(&pseudonyms.replaced), names(&pseudonyms.kept));
        if is_replaced {
            Rule::Replace
        } else if is_kept {
            Rule::Keep
        } else if inherited == Rule::Judge {
            match Name::new(name) {
                name if name.is_replaced() => Rule::ReplaceButEventType,
                name if name.is_answer() => Rule::ReplaceButTypes,
                _ => Rule::Judge,
            }
        } else {
            inherited
        }
    }

    fn number(&mut self, place: &Place, number: &str) -> String {
        let stays = match place.rule {
            Rule::Keep => true,
            Rule::Replace | Rule::ReplaceButEventType | Rule::ReplaceButTypes => false,
            Rule::Judge => place.about().number_stays(number),
        };
        let replaced = match stays {
            true => number.to_owned(),
            false => self.pseudonyms.texts.number_of(&place.name, number),
        };
        self.note(place, number, &replaced);
        replaced
    }

    fn text(&mut self, place: &Place, text: &str) -> String {
        if place.rule == Rule::Keep {
            return text.to_owned();
        }
        if let Some(nested) = self.nested(place, text) {
            return nested;
        }
        let is_event_type = || self.event_type.iter().any(|known| known == text);
        let stays = match place.rule {
            Rule::Keep => true,
            Rule::Replace => false,
            Rule::ReplaceButEventType => is_event_type(),
            Rule::ReplaceButTypes => {
                is_event_type() || place.name.is_type() && place.about().text_stays(text)
            }
            Rule::Judge => is_event_type() || place.about().text_stays(text),
        };
        if stays {
            return text.to_owned();
        }
        if !place.name.is_secret() {
            self.unreadable = self.unreadable.or(unreadable(text));
        }
        let replaced = self.pseudonyms.texts.text(&place.name, text);
        self.note(place, text, &replaced);
        replaced
    }

    fn note(&mut self, place: &Place, value: &str, replaced: &str) {
        if value != replaced {
            self.found.insert(place.path.clone());
        }
    }

    /// Writes a JSON document that is inside a text, either as it is or in base64.
    fn nested(&mut self, place: &Place, text: &str) -> Option<String> {
        if text.starts_with(['{', '[']) {
            let mut written = String::with_capacity(text.len());
            self.value(place, &read(text).ok()?, None, &mut written)
                .ok()?;
            return Some(written);
        }
        // In base64, a text that starts with `{"` or `[{`, with or without white space, starts with one of these
        // letters.
        if !text.starts_with(['e', 'W', 'I', 'C']) {
            return None;
        }
        let (engine, bytes) = [&STANDARD, &URL_SAFE_NO_PAD]
            .into_iter()
            .find_map(|engine| Some((engine, engine.decode(text).ok()?)))?;
        let document = String::from_utf8(bytes).ok()?;
        let document = document.trim_start();
        if !document.starts_with(['{', '[']) {
            return None;
        }
        let mut written = String::with_capacity(document.len());
        self.value(place, &read(document).ok()?, None, &mut written)
            .ok()?;
        Some(engine.encode(written))
    }
}

/// The reason why no program could read a text after its replacement, if there is one.
fn unreadable(text: &str) -> Option<&'static str> {
    let decoded = |engine: &GeneralPurpose, text: &str| {
        let text: String = text.split_ascii_whitespace().collect();
        engine.decode(text).ok()
    };
    // In base64, a text that starts with `<` starts with this letter.
    if text.starts_with('P')
        && let Some(decoded) = decoded(&STANDARD, text)
        && decoded.starts_with(b"<")
        && decoded.trim_ascii_end().ends_with(b">")
    {
        return Some("a text in its body is XML");
    }
    let is_object = |part: &str| {
        let json = decoded(&URL_SAFE_NO_PAD, part).filter(|json| json.starts_with(b"{"));
        json.is_some_and(|json| serde_json::from_slice::<&RawValue>(&json).is_ok())
    };
    match text.split('.').collect::<Vec<_>>().as_slice() {
        [header, content, _] if is_object(header) && is_object(content) => {
            Some("a text in its body has a signature of its own")
        }
        _ => None,
    }
}

/// Whether a name is data, such as a key in a map, and not part of a schema.
fn is_data(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_of_schema = |char: char| char.is_ascii_alphanumeric() || "_-:.$[]/".contains(char);
    !name.chars().all(is_of_schema)
        || digits >= 6
        || digits > 0 && name.bytes().any(|byte| byte.is_ascii_uppercase()) && name.len() >= 9
        || name.len() > 64
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn next(i: usize, indent: Option<usize>, written: &mut String) {
    if i > 0 {
        written.push(',');
    }
    line(indent, written);
}

fn line(indent: Option<usize>, written: &mut String) {
    if let Some(indent) = indent {
        written.push('\n');
        written.extend(std::iter::repeat_n("  ", indent));
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
