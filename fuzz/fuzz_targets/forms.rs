//! The fields of a form and of a query must be the same as with the crate `form_urlencoded`.
//!
//! Input: a line with the query, and then the form.
//!
//! Fields are compared in the content that Mandrill and Twilio sign, and in Ko-fi's only field. `form_urlencoded`
//! replaces bytes that are not UTF-8, so such a form is read, but not compared.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use fuzz::now;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};
use idempotent_webhook::provider::Verified;
use idempotent_webhook::provider::signature::{Hmac, SignatureError, SignedContent};
use idempotent_webhook::{Provider, Secret, Source, presets};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const URL: &str = "https://example.com";
const TOKEN: &str = "token of Ko-fi";
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

/// A body with more fields is refused.
const MAX_FIELDS: usize = 1000;

static MANDRILL: LazyLock<Provider> = LazyLock::new(|| preset("mandrill"));
static TWILIO: LazyLock<Provider> = LazyLock::new(|| preset("twilio"));
static KOFI: LazyLock<Provider> = LazyLock::new(|| preset("kofi"));
static QUERY: LazyLock<Provider> = LazyLock::new(|| {
    let content = SignedContent::new().query_value("q").text(";").body();
    Provider::custom("acme")
        .signature(Hmac::hex(SIGNATURE).signed(content), secret())
        .delivery_id(Source::body_digest())
});

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let (query, form) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let uri = [b"/?", query].concat();
    let (mut head, ()) = Request::new(()).into_parts();
    head.headers
        .insert(SIGNATURE, HeaderValue::from_static("00"));
    head.uri = uri.try_into().unwrap_or_default();
    let query = head.uri.query().unwrap_or_default().to_owned();

    check_query(&head, &query);
    let Some(fields) = fields(form) else {
        return read(&head, form);
    };
    check_mandrill(&head, form, fields.clone());
    check_twilio(&head, &query, form, &fields);
    check_kofi(&head, form, &fields);
});

type Fields = Vec<(String, String)>;

/// The form as `form_urlencoded` reads it. `None` if `form_urlencoded` may have replaced something.
fn fields(form: &[u8]) -> Option<Fields> {
    let fields: Fields = form_urlencoded::parse(form).into_owned().collect();
    let is_replaced = |text: &String| text.contains(char::REPLACEMENT_CHARACTER);
    let may_be_replaced = fields
        .iter()
        .any(|(name, value)| is_replaced(name) || is_replaced(value));
    (!may_be_replaced).then_some(fields)
}

fn read(head: &Parts, form: &[u8]) {
    for provider in [&*MANDRILL, &*TWILIO, &*KOFI] {
        let _ = provider.verify(head, form, now());
        let _ = provider.signed_content(head, form);
    }
}

fn check_query(head: &Parts, query: &str) {
    let mut fields = form_urlencoded::parse(query.as_bytes());
    let expected = match fields.find(|(name, _)| name == "q") {
        Some((_, value)) => Ok(Some(format!("{value};body").into_bytes())),
        None => Err(SignatureError::NoMatch),
    };
    assert_eq!(QUERY.signed_content(head, b"body"), expected);
}

fn check_mandrill(head: &Parts, form: &[u8], mut fields: Fields) {
    fields.sort();
    let url = format!("{URL}{}", head.uri);
    let content = fields.iter().flat_map(|(name, value)| [&**name, value]);
    let content: String = [&*url].into_iter().chain(content).collect();
    let expected = match fields.len() <= MAX_FIELDS {
        true => Ok(Some(content.into_bytes())),
        false => Err(SignatureError::MalformedBody),
    };
    assert_eq!(MANDRILL.signed_content(head, form), expected);
}

fn check_twilio(head: &Parts, query: &str, form: &[u8], fields: &Fields) {
    let has_digest = form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "bodySHA256");
    let in_query = form_urlencoded::parse(query.as_bytes()).count();
    if has_digest || in_query > MAX_FIELDS || fields.len() > MAX_FIELDS {
        return;
    }
    let mut values = BTreeMap::<_, BTreeSet<_>>::new();
    for (name, value) in fields {
        values.entry(name).or_default().insert(value);
    }
    let mut content = format!("{URL}{}", head.uri);
    for (name, values) in values {
        values
            .into_iter()
            .for_each(|value| content.extend([name, value].map(String::as_str)));
    }
    let found = TWILIO.signed_content(head, form);
    assert_eq!(found, Ok(Some(content.into_bytes())));
}

/// Checks the JSON with the token and an id, in a field that must occur exactly once.
fn check_kofi(head: &Parts, form: &[u8], fields: &Fields) {
    let verified = KOFI.verify(head, form, now());
    let Some(delivery) = verified.as_ref().ok().and_then(Verified::delivery) else {
        return;
    };
    let mut data = fields.iter().filter(|(name, _)| name == "data");
    let (Some((_, json)), None) = (data.next(), data.next()) else {
        panic!("the field is not there once");
    };
    let json: Value = serde_json::from_str(json).unwrap_or_default();
    // An id that is a number, or JSON that only the JSON path can read, is tested more closely by the target
    // `json_path`.
    if let (Some(token), Some(id)) = (
        json["verification_token"].as_str(),
        json["message_id"].as_str(),
    ) {
        assert_eq!((token, id), (TOKEN, delivery.id().as_str()));
    }
}

fn preset(name: &str) -> Provider {
    let preset = presets::by_name(name).expect("a preset");
    preset
        .provider(secret())
        .public_url(URL.parse().expect("a URL"))
}

fn secret() -> Secret {
    Secret::new(TOKEN).expect("a secret")
}
