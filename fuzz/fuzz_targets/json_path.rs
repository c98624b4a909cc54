//! A delivery id and an event type in JSON must be what `serde_json_path` finds in the document of `serde_json`.
//!
//! Input: two lines with the two paths, and then the document.
//!
//! The crate differs from both for stated reasons:
//! - A path names one value, so it has no negative index. It may have an index beyond 2^53, which no list has.
//! - Digits are taken as they are written, while `serde_json` turns more than 20 digits into a float.
//! - A member on a path is refused if it occurs twice, because readers differ in which one counts.
//! - The rest of the document only has to be JSON by its grammar. `serde_json` refuses a lone surrogate, a number
//!   beyond all floats and 128 levels, because it builds a document.

#![no_main]

use std::fmt;
use std::time::SystemTime;

use fuzz::is_usable;
use http::Request;
use idempotent_webhook::provider::signature::{
    SignatureError, SignatureScheme, Signed, SignedRequest,
};
use idempotent_webhook::provider::{VerifiedDelivery, VerifyError};
use idempotent_webhook::{JsonPath, Provider, Secret, Secrets, Source};
use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (id, event_type, body) = (Path::parse(next()), Path::parse(next()), next());
    let (Some(id), Some(event_type)) = (id, event_type) else {
        return;
    };
    let found = identify(&id, &event_type, body);
    // A reader may skip a byte order mark, but `serde_json` does not.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if let Ok(delivery) = &found {
        assert!(is_usable(delivery.id().as_str()), "{delivery:?}");
        assert!(std::str::from_utf8(body).is_ok(), "not UTF-8");
        let grammar = serde_json::from_slice::<IgnoredAny>(body);
        assert!(grammar.is_ok(), "not JSON: {grammar:?}");
    }
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let first: First = serde_json::from_slice(body).expect("the same JSON");
    // If a path ends at an object or an array, nothing is read.
    let read = |path: &Path, document| {
        path.find(document)
            .filter(|value| !value.is_object() && !value.is_array())
            .cloned()
    };
    let is_ambiguous = |path: &Path| read(path, &document) != read(path, &first.document);
    if is_ambiguous(&id) || is_ambiguous(&event_type) {
        // The event type is not part of the deduplication key, but it is read in the same pass.
        assert!(
            found.is_err(),
            "of a member that is there twice, one is read: {found:?}"
        );
        return;
    }
    match &found {
        Err(_) if first.has_repeated => {}
        Err(_) => id.assert_found(None, &document),
        Ok(delivery) => {
            id.assert_found(Some(delivery.id().as_str()), &document);
            event_type.assert_found(delivery.event_type(), &document);
        }
    }
});

fn identify(id: &Path, event_type: &Path, body: &[u8]) -> Result<VerifiedDelivery, VerifyError> {
    let secret = Secret::new("secret").expect("a secret");
    let provider = Provider::custom("acme")
        .signature(Anyone, secret)
        .delivery_id(Source::json(id.ours.clone()))
        .event_type(Source::json(event_type.ours.clone()));
    let (head, ()) = Request::new(()).into_parts();
    let verified = provider.verify(&head, body, SystemTime::UNIX_EPOCH)?;
    Ok(verified.delivery().expect("no handshake").clone())
}

/// Accepts each request as authentic.
#[derive(Debug)]
struct Anyone;

impl SignatureScheme for Anyone {
    fn verify(&self, _: &SignedRequest<'_>, _: &Secrets) -> Result<Signed, SignatureError> {
        Ok(Signed::new())
    }
}

/// A path, as this crate reads it and as `serde_json_path` reads it.
struct Path {
    ours: JsonPath,
    theirs: serde_json_path::JsonPath,
}

impl Path {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let ours: JsonPath = text.parse().ok()?;
        assert_eq!(ours.to_string(), text);
        let theirs = match serde_json_path::JsonPath::parse(text) {
            Ok(theirs) => theirs,
            Err(error) => {
                let mut numbers = text.split(|c: char| !c.is_ascii_digit());
                // `serde_json_path` reads no escaped surrogate pairs, and no large numbers.
                let has_surrogate = text.to_ascii_lowercase().contains(r"\ud");
                assert!(
                    has_surrogate || numbers.any(|digits| digits.len() > 15),
                    "{text} is a path: {error}"
                );
                return None;
            }
        };
        Some(Self { ours, theirs })
    }

    fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        let found = self.theirs.query(document);
        found
            .at_most_one()
            .expect("a path of the crate names one value")
    }

    fn assert_found(&self, found: Option<&str>, document: &Value) {
        let agrees = match self.find(document) {
            Some(Value::String(text)) => {
                found
                    == Some(text)
                        .filter(|text| is_usable(text))
                        .map(|text| &**text)
            }
            // The number is not an integer, or `serde_json` has turned it into a float, which may differ in its last
            // digit.
            Some(Value::Number(number)) if number.is_f64() => found.is_none_or(|digits| {
                let (found, number): (f64, _) =
                    (digits.parse().unwrap_or(f64::NAN), number.as_f64());
                is_integer(digits)
                    && number.is_some_and(|number| (found - number).abs() <= number.abs() * 1e-15)
            }),
            Some(Value::Number(number)) => found == Some(&*number.to_string()),
            _ => found.is_none(),
        };
        assert!(agrees, "{} of {document} is {found:?}", self.ours);
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A document in which the first of two members with the same name counts. In a `Value`, the last one counts.
struct First {
    document: Value,
    /// Whether any member occurs twice.
    has_repeated: bool,
}

impl From<Value> for First {
    fn from(document: Value) -> Self {
        let has_repeated = false;
        Self {
            document,
            has_repeated,
        }
    }
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = First;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<First, A::Error> {
        let mut members = Map::new();
        let mut has_repeated = false;
        while let Some((name, value)) = map.next_entry::<String, First>()? {
            has_repeated |= value.has_repeated || members.contains_key(&name);
            members.entry(name).or_insert(value.document);
        }
        let document = Value::Object(members);
        Ok(First {
            document,
            has_repeated,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First, A::Error> {
        let mut elements = Vec::new();
        let mut has_repeated = false;
        while let Some(element) = seq.next_element::<First>()? {
            has_repeated |= element.has_repeated;
            elements.push(element.document);
        }
        let document = Value::Array(elements);
        Ok(First {
            document,
            has_repeated,
        })
    }

    fn visit_unit<E>(self) -> Result<First, E> {
        Ok(Value::Null.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<First, E> {
        Ok(Value::from(value).into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<First, E> {
        Ok(Value::from(value).into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<First, E> {
        Ok(Value::from(value).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<First, E> {
        Ok(Value::from(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<First, E> {
        Ok(Value::from(value).into())
    }
}
