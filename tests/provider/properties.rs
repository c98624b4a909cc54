//! Property tests with any bytes as input: the presets do not panic, and their results agree with a
//! simple implementation of the same rules.
//!
//!     PROPTEST_CASES=1000000 cargo test --release --test provider properties::

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hmac::{KeyInit, Mac};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};
use idempotent_webhook::provider::signature::{
    Encoding, Hash, Hmac, Key, SignatureError, SignatureScheme, SignedContent, Tolerance,
};
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::{JsonPath, Provider, Secret, Source, presets, testing};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;
use sha2::Sha256;

use crate::support::{own_folder, read_folder};

const SECRET: &str = "secret";

fn mac(signed: &[u8]) -> String {
    let mac = hmac::Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    hex::encode(mac.chain_update(signed).finalize().into_bytes())
}

fn head(headers: &[(&'static str, &[u8])]) -> Parts {
    let mut head = Request::new(()).into_parts().0;
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value).unwrap();
        head.headers.append(HeaderName::from_static(name), value);
    }
    head
}

/// Verifies an authentic request whose id is in the given place.
fn identify(id: Source, header: &[u8], body: &[u8]) -> Result<Verified, VerifyError> {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"));
    let provider = Provider::custom("acme")
        .signature(scheme, Secret::new(SECRET).unwrap())
        .delivery_id(id);
    let signature = mac(body);
    let head = head(&[("x-signature", signature.as_bytes()), ("x-id", header)]);
    provider.verify(&head, body, SystemTime::now())
}

/// Any header value: no control characters except the tab.
fn header_value() -> impl Strategy<Value = Vec<u8>> {
    vec(
        prop_oneof![Just(b'\t'), 0x20..=0x7e_u8, 0x80..=0xff_u8],
        0..300,
    )
}

/// Any JSON. It has only a few different names, so that random paths often lead to a value.
fn json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 64, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[abé]|any", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

#[derive(Clone, Debug)]
enum Step {
    Member(String),
    Element(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        "[abé]".prop_map(Step::Member),
        (0..4_usize).prop_map(Step::Element),
    ];
    vec(step, 1..5)
}

/// A path to these steps, in one of the possible notations.
fn path(steps: &[Step], quoted: bool) -> JsonPath {
    let mut text = "$".to_owned();
    for step in steps {
        text += &match step {
            Step::Member(name) if quoted => format!("['{name}']"),
            Step::Member(name) => format!(".{name}"),
            Step::Element(index) => format!("[{index}]"),
        };
    }
    text.parse().unwrap()
}

/// The id that the rules read from a value. `None` if the value cannot be an id.
fn usable(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        _ => return None,
    };
    let usable = !text.trim().is_empty() && text.len() <= 255 && !text.contains(char::is_control);
    usable.then_some(text)
}

fn follow<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Member(name) => value.as_object()?.get(name),
        Step::Element(index) => value.as_array()?.get(*index),
    })
}

/// Whether the rules accept a `Stripe-Signature` header over an empty body: it has exactly one
/// time, in digits, and one `v1` that is the MAC.
fn stripe_accepts(header: &str) -> bool {
    let items: Vec<&str> = header.split(',').collect();
    let times: Vec<&str> = items.iter().filter_map(|i| i.strip_prefix("t=")).collect();
    let [time] = times[..] else {
        return false;
    };
    let digits = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    let expected = format!("v1={}", mac(format!("{time}.").as_bytes()));
    digits && time.parse::<u64>().is_ok() && items.contains(&expected.as_str())
}

/// Items of such a header for an empty body, some right and some wrong.
fn stripe_items() -> impl Strategy<Value = Vec<String>> {
    let signed = |time: &str| mac(format!("{time}.").as_bytes());
    let item = prop_oneof![
        Just("t=1000".to_owned()),
        Just("t=1001".to_owned()),
        "t=[0-9]{0,22}",
        "t=-?[0-9. ]{0,5}",
        Just(format!("v1={}", signed("1000"))),
        Just(format!("v1={}", signed("1001"))),
        Just(format!("v1={}", signed("1000").to_uppercase())),
        Just(format!("v0={}", signed("1000"))),
        Just(format!(" v1={}", signed("1000"))),
        "v1=[0-9a-f]{0,66}",
        "[ -~]{0,20}",
    ];
    vec(item, 0..6)
}

/// Any scheme of `Hmac` whose parts are in headers of these names.
fn hmac_scheme() -> impl Strategy<Value = Hmac> {
    let header = HeaderName::from_static;
    let encoding = prop_oneof![
        Just(Encoding::Hex),
        Just(Encoding::HexOfAnyCase),
        Just(Encoding::Base64),
        Just(Encoding::Base64Url),
    ];
    let hash = prop_oneof![
        Just(Hash::Md5),
        Just(Hash::Sha1),
        Just(Hash::Sha256),
        Just(Hash::Sha384),
        Just(Hash::Sha512),
    ];
    let key = prop_oneof![Just(Key::Raw), Just(Key::Base64), Just(Key::Hex),];
    let separators = prop_oneof![Just(""), Just(","), Just(", "), Just(";")];
    let time = 0..6_u8;
    let content = 0..4_u8;
    (
        encoding,
        hash,
        key,
        separators,
        any::<bool>(),
        any::<bool>(),
        time,
        content,
    )
        .prop_map(
            move |(encoding, hash, key, separator, prefixed, several, time, content)| {
                let mut scheme = Hmac::hex(header("x-signature"))
                    .encoding(encoding)
                    .hash(hash)
                    .key(key)
                    .separator(separator);
                if prefixed {
                    scheme = scheme.prefix("v1=");
                }
                if several {
                    scheme = scheme.and_header(header("x-other"));
                }
                let timed = SignedContent::new().timestamp().text(".");
                scheme = match (time, separator) {
                    (0, _) => scheme.timestamp_header(header("x-time")),
                    (1, _) => scheme
                        .timestamp_header(header("x-time"))
                        .timestamp_in_rfc_3339(),
                    (2, _) => scheme
                        .timestamp_header(header("x-time"))
                        .timestamp_in_milliseconds(),
                    (3, "," | ";" | ", ") => scheme.timestamp_field("t="),
                    (4, "," | ";" | ", ") => scheme.timestamp_field(""),
                    _ => return scheme.signed(SignedContent::new().method().body()),
                };
                let request_id = header("x-id");
                scheme.id_header(request_id.clone()).signed(match content {
                    0 => timed.body(),
                    1 => timed.body().id(),
                    2 => timed.path_and_query().text(":").header(request_id).body(),
                    _ => timed
                        .optional(SignedContent::new().text("q=").query_value("q"))
                        .optional(SignedContent::new().header(header("x-absent")))
                        .body(),
                })
            },
        )
}

/// Hexadecimal digits that are valid base64 as well, so that any kind of key can be made from them.
const ANY_SECRET: &str = "00112233445566778899aabbccddeeff";

fn provider_of(scheme: impl SignatureScheme) -> Provider {
    Provider::custom("acme")
        .signature(scheme, Secret::new(ANY_SECRET).unwrap())
        .delivery_id(Source::body_digest())
        .tolerance(Tolerance::unlimited())
}

/// Presets with schemes that only presets can describe, and that sign any body.
fn preset_of_hmac() -> impl Strategy<Value = Provider> {
    const NAMES: [&str; 8] = [
        "box",
        "cashfree",
        "docusign",
        "easypost",
        "mollie",
        "persona",
        "recurly",
        "woocommerce",
    ];
    prop::sample::select(&NAMES[..]).prop_map(|name| {
        let preset = presets::by_name(name).unwrap();
        preset
            .provider(Secret::new(ANY_SECRET).unwrap())
            .delivery_id(Source::body_digest())
            .event_type(Source::body_digest())
            .tolerance(Tolerance::unlimited())
    })
}

/// Possible values of a signature header, some right and some wrong.
fn scheme_value() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        "(t=)?[0-9]{0,14}([,; ]{1,2}(v1=)?[0-9a-fA-F]{0,64}){0,3}",
        "(v1=|sha256=)?[0-9a-f]{64}",
        "v1,[A-Za-z0-9+/]{43}=",
        "[A-Za-z0-9+/]{43}=",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]{1,12})?(Z|[+-][0-9:]{5})",
        "Basic [A-Za-z0-9+/]{0,20}={0,2}",
        "[A-Za-z0-9_-]{0,30}\\.[A-Za-z0-9_-]{0,30}\\.[A-Za-z0-9_-]{0,30}",
    ];
    prop_oneof![text.prop_map(String::into_bytes), header_value()]
}

/// The headers that the presets read, collected from their cases in `tests/vectors`.
fn header_names() -> Vec<HeaderName> {
    static NAMES: std::sync::OnceLock<Vec<HeaderName>> = std::sync::OnceLock::new();
    let read = || {
        let cases = read_folder(&own_folder());
        let cases = cases.iter().flat_map(|(_, cases)| cases);
        let names: BTreeSet<&String> = cases.flat_map(|case| case.headers.keys()).collect();
        names.iter().map(|name| name.parse().unwrap()).collect()
    };
    NAMES.get_or_init(read).clone()
}

proptest! {
    #[test]
    fn what_is_signed_is_verified_and_nothing_else(
        provider in prop_oneof![3 => hmac_scheme().prop_map(provider_of), 1 => preset_of_hmac()],
        body in vec(any::<u8>(), 0..60),
        seconds in 0..4_000_000_000_u64,
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let secret = Secret::new(ANY_SECRET).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let request = Request::post("/a?q=1")
            .header("x-id", "id-1")
            .body(Bytes::from(body.clone()))
            .unwrap();
        let signed = testing::sign(&provider, &secret, request, time).unwrap();
        let (head, _) = signed.into_parts();
        let verified = provider.verify(&head, &body, SystemTime::now());
        let signed_at = verified.unwrap().delivery().unwrap().signed_at();
        prop_assert!(signed_at.is_none_or(|signed_at| signed_at == time));

        let mut other = body.clone();
        match body.is_empty() {
            true => other.push(bit),
            false => other[at.index(body.len())] ^= 1 << bit,
        }
        prop_assert!(provider.verify(&head, &other, SystemTime::now()).is_err());

        let mut damaged = head.clone();
        let names: Vec<_> = head.headers.keys().cloned().collect();
        let name = &names[at.index(names.len())];
        let mut value = head.headers[name].as_bytes().to_vec();
        let index = at.index(value.len());
        value[index] = if value[index] == b'!' { b'?' } else { b'!' };
        damaged.headers.insert(name, HeaderValue::from_bytes(&value).unwrap());
        // Not every signed content includes the id.
        let refused = provider.verify(&damaged, &body, SystemTime::now()).is_err();
        prop_assert!(refused || name == "x-id", "{}", name);
    }

    #[test]
    fn any_head_is_survived_by_any_scheme(
        scheme in hmac_scheme(),
        headers in vec(("x-signature|x-other|x-time|x-id", scheme_value()), 0..6),
        path in "/[a-z?&=%+]{0,20}",
        body in vec(any::<u8>(), 0..20),
    ) {
        let mut head = head(&[]);
        head.uri = path.parse().unwrap_or_default();
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(&value).unwrap();
            head.headers.append(name.parse::<HeaderName>().unwrap(), value);
        }
        let refused = provider_of(scheme).verify(&head, &body, SystemTime::now());
        prop_assert!(matches!(refused, Err(VerifyError::Signature(_))));
    }

    #[test]
    fn any_request_is_survived_by_any_preset(
        preset in prop::sample::select(presets::ALL),
        values in vec(scheme_value(), 1..3),
        path in "/[a-z?&=%+.]{0,20}",
        body in prop_oneof![vec(any::<u8>(), 0..60), json().prop_map(|json| json.to_string().into_bytes())],
        method in prop::sample::select(&["GET", "HEAD", "POST"][..]),
    ) {
        let provider = preset
            .provider(Secret::new(ANY_SECRET).unwrap())
            .public_url("https://example.com".parse().unwrap());
        let mut head = head(&[]);
        head.uri = path.parse().unwrap_or_default();
        head.method = method.parse().unwrap();
        for value in values {
            let value = HeaderValue::from_bytes(&value).unwrap();
            for name in header_names() {
                head.headers.append(name, value.clone());
            }
        }
        let verified = provider.verify(&head, &body, SystemTime::now());
        let is_delivery = verified.is_ok_and(|verified| verified.delivery().is_some());
        prop_assert!(!is_delivery);
        // Without any of the headers.
        let _ = provider.verify(&self::head(&[]), &body, SystemTime::now());
    }

    #[test]
    fn a_json_id_is_what_the_path_leads_to(
        document in json(), steps in steps(), quoted: bool, pretty: bool,
    ) {
        let body = match pretty {
            true => serde_json::to_string_pretty(&document).unwrap(),
            false => document.to_string(),
        };
        // The document is read back, because printing and reading a float may change its last
        // digit.
        let document: Value = serde_json::from_str(&body).unwrap();
        let expected = follow(&document, &steps).and_then(usable);
        let found = identify(Source::json(path(&steps, quoted)), b"", body.as_bytes());
        let found = found.ok().and_then(|verified| Some(verified.delivery()?.id().to_string()));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn several_paths_are_each_what_they_would_be_alone(
        document in json(), first in steps(), second in steps(),
    ) {
        let body = document.to_string();
        let alone = |steps: &[Step]| {
            let found = identify(Source::json(path(steps, false)), b"", body.as_bytes());
            found.ok().and_then(|verified| Some(verified.delivery()?.id().to_string()))
        };
        let both = Source::json(path(&first, false)).and(Source::json(path(&second, false)));
        let found = identify(both, b"", body.as_bytes());
        let found = found.ok().and_then(|verified| Some(verified.delivery()?.id().to_string()));
        if let (Some(a), Some(b)) = (alone(&first), alone(&second)) {
            let joined = format!("{}:{a}{}:{b}", a.len(), b.len());
            prop_assert_eq!(found, (joined.len() <= 255).then_some(joined));
        } else {
            prop_assert_eq!(found, None);
        }
    }

    #[test]
    fn a_damaged_document_is_read_only_if_it_is_still_json(
        document in json(), at: prop::sample::Index, byte: u8, cut: bool,
    ) {
        let mut body = serde_json::json!({"id": "x", "rest": document}).to_string().into_bytes();
        let at = at.index(body.len());
        if cut {
            body.truncate(at);
        } else {
            body[at] = byte;
        }
        let found = identify(Source::json("$.id".parse().unwrap()), b"", &body).is_ok();
        let oracle: Result<Value, _> = serde_json::from_slice(&body);
        if found {
            // A part that the reader skips only has to follow the grammar of JSON. The grammar
            // allows a lone surrogate, and a number that is too large for a float.
            let grammar: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&body);
            prop_assert!(grammar.is_ok());
            prop_assert!(std::str::from_utf8(&body).is_ok());
        } else {
            let has_id = oracle.is_ok_and(|value| {
                // Damage may have added a second `id`, which is refused.
                value.get("id").and_then(usable).is_some()
                    && String::from_utf8_lossy(&body).matches("\"id\"").count() == 1
            });
            prop_assert!(!has_id, "{}", String::from_utf8_lossy(&body));
        }
    }

    #[test]
    fn any_bytes_are_survived_as_a_body(body in vec(any::<u8>(), 0..300)) {
        let _ = identify(Source::json("$.a[1].b".parse().unwrap()), b"", &body);
    }

    #[test]
    fn any_text_is_survived_as_a_path(text in "\\$?[\\[\\]'\"\\\\.a-z0-9u$* é\u{0}]{0,30}") {
        if let Ok(path) = text.parse::<JsonPath>() {
            prop_assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn a_header_id_is_visible_ascii_or_nothing(value in header_value()) {
        let id = Source::header(HeaderName::from_static("x-id"));
        let found = identify(id, &value, b"");
        let visible = (1..=255).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
        match found {
            Ok(verified) => {
                prop_assert!(visible);
                prop_assert_eq!(verified.delivery().unwrap().id().as_str().as_bytes(), value);
            }
            Err(_) => prop_assert!(!visible),
        }
    }

    #[test]
    fn a_stripe_header_is_accepted_by_the_rules(items in stripe_items()) {
        let header = items.join(",");
        let provider = presets::stripe(Secret::new(SECRET).unwrap())
            .tolerance(Tolerance::unlimited())
            .delivery_id(Source::body_digest());
        let head = head(&[("stripe-signature", header.as_bytes())]);
        // The event type is read from JSON, and an empty body is not JSON.
        let accepted = !matches!(
            provider.verify(&head, b"", SystemTime::now()),
            Err(VerifyError::Signature(_))
        );
        prop_assert_eq!(accepted, stripe_accepts(&header), "{}", header);
    }

    #[test]
    fn any_bytes_are_survived_as_a_signature(value in header_value(), body in vec(any::<u8>(), 0..20)) {
        let secret = || Secret::new(SECRET).unwrap();
        for (name, provider) in [
            ("stripe-signature", presets::stripe(secret())),
            ("x-hub-signature-256", presets::github(secret())),
            ("shopify-hmac-sha256", presets::shopify(secret())),
        ] {
            let refused = provider.verify(&head(&[(name, &value)]), &body, SystemTime::now());
            prop_assert!(matches!(refused, Err(VerifyError::Signature(_))));
        }
    }

    #[test]
    fn a_time_is_in_tolerance_or_not(signed in 0..4_000_u64, now in 0..4_000_u64, limit in 0..4_000_u64) {
        let header = format!("t={signed},v1={}", mac(format!("{signed}.").as_bytes()));
        let provider = |tolerance| {
            presets::stripe(Secret::new(SECRET).unwrap())
                .tolerance(tolerance)
                .verify(
                    &head(&[("stripe-signature", header.as_bytes())]),
                    b"",
                    SystemTime::UNIX_EPOCH + Duration::from_secs(now),
                )
        };
        let limit_for = Duration::from_secs(limit);
        let too_old = now > signed + limit;
        let too_new = signed > now + limit;
        let refused = provider(Tolerance::two_sided(limit_for));
        prop_assert_eq!(
            matches!(refused, Err(VerifyError::Signature(SignatureError::TooOld { .. }))),
            too_old
        );
        prop_assert_eq!(
            matches!(refused, Err(VerifyError::Signature(SignatureError::TooNew { .. }))),
            too_new
        );
        let refused = provider(Tolerance::past_only(limit_for));
        prop_assert_eq!(matches!(refused, Err(VerifyError::Signature(_))), too_old);
    }
}
