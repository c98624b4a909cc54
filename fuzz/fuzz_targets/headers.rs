//! Headers are read by the rules of the documentation: lists of signatures, times, encodings, ids, the public URL, and
//! names of event types.
//!
//! Input: a byte that chooses one of these, two bytes that choose within it, and the text. In a text, `$mac` stands for
//! the right MAC.

#![no_main]

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL};
use bytes::Bytes;
use fuzz::{is_handled, is_usable, now, read_request};
use hmac::{KeyInit, Mac};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};
use idempotent_webhook::provider::signature::{Encoding, Hmac, SignedContent, Tolerance};
use idempotent_webhook::provider::{PublicUrl, Verified, VerifiedDelivery};
use idempotent_webhook::{Provider, Secret, Source, VerifiedWebhook, presets};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use sha2::Sha256;

const SECRET: &str = "secret";
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const TIME: HeaderName = HeaderName::from_static("x-time");
const ID: HeaderName = HeaderName::from_static("x-id");
const TYPE: HeaderName = HeaderName::from_static("x-type");
const ACTION: HeaderName = HeaderName::from_static("x-action");

fuzz_target!(|data: &[u8]| {
    let Some(([which, a, b], text)) = data.split_first_chunk::<3>() else {
        return;
    };
    match which % 6 {
        0 => list(text),
        1 => time(*a, text),
        2 => encoding(*a, *b, text),
        3 => id(text),
        4 => public_url(text),
        _ => event_type(text),
    }
});

/// A list as in Stripe's header: exactly one time, in digits, and a `v1` that is the MAC.
fn list(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let items: Vec<&str> = text.split(',').collect();
    let times: Vec<&str> = items
        .iter()
        .filter_map(|item| item.strip_prefix("t="))
        .collect();
    let mac = hex::encode(mac(format!("{}.", times.first().unwrap_or(&"")).as_bytes()));
    let value = text.replace("$mac", &mac);
    let expected = match times[..] {
        [time] if value.split(',').any(|item| item == format!("v1={mac}")) => seconds(time),
        _ => None,
    };
    let stripe = presets::stripe(secret()).delivery_id(Source::body_digest());
    assert_time(stripe, &[("stripe-signature", &value)], expected);
}

/// A time in a header.
fn time(unit: u8, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let content = SignedContent::new().timestamp().text(".").body();
    let scheme = Hmac::hex(SIGNATURE).timestamp_header(TIME).signed(content);
    let (scheme, expected) = match unit % 3 {
        0 => (scheme, seconds(&text)),
        1 => (scheme.timestamp_in_milliseconds(), milliseconds(&text)),
        _ => (scheme.timestamp_in_rfc_3339(), rfc_3339(&text)),
    };
    let provider = Provider::custom("acme")
        .signature(scheme, secret())
        .delivery_id(Source::body_digest());
    let mac = hex::encode(mac(format!("{text}.").as_bytes()));
    assert_time(
        provider,
        &[("x-time", &text), ("x-signature", &mac)],
        expected,
    );
}

fn assert_time(provider: Provider, headers: &[(&str, &str)], expected: Option<SystemTime>) {
    let Some(head) = head(headers) else {
        return;
    };
    // A header is read only if all its bytes are ASCII.
    let expected = expected.filter(|_| headers.iter().all(|(_, value)| value.is_ascii()));
    let provider = provider.tolerance(Tolerance::unlimited());
    let signed_at = match provider.verify(&head, b"", now()) {
        Ok(verified) => verified.delivery().and_then(VerifiedDelivery::signed_at),
        Err(_) => None,
    };
    assert_eq!(signed_at, expected, "{headers:?}");
}

fn seconds(text: &str) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(digits(text)?))
}

fn milliseconds(text: &str) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(digits(text)?))
}

fn digits(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// The time as `jiff` reads it. `jiff` accepts more forms than RFC 3339 has, and reads a leap second as the second
/// before it.
fn rfc_3339(text: &str) -> Option<SystemTime> {
    let (time, fraction, zone) = parts_of_rfc_3339(text)?;
    let is_leap = time.ends_with(":60");
    let time = if is_leap {
        format!("{}:59", time.strip_suffix(":60")?)
    } else {
        time.to_owned()
    };
    let fraction = if fraction.is_empty() {
        ""
    } else {
        &fraction[..fraction.len().min(10)]
    };
    let read: Timestamp = format!("{time}{fraction}{zone}").parse().ok()?;
    let read = Duration::try_from(read.as_duration()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(read + Duration::from_secs(is_leap.into()))
}

/// The date and the time, the fraction with its point, and the zone, if each has the form of RFC 3339.
fn parts_of_rfc_3339(text: &str) -> Option<(&str, &str, &str)> {
    let has_form = |text: &str, form: &str| {
        text.len() == form.len()
            && text
                .bytes()
                .zip(form.bytes())
                .all(|(byte, form)| match form {
                    b'0' => byte.is_ascii_digit(),
                    b'T' => byte.eq_ignore_ascii_case(&b'T'),
                    b'+' => byte == b'+' || byte == b'-',
                    form => byte == form,
                })
    };
    let (time, rest) = text.split_at_checked("0000-00-00T00:00:00".len())?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone);
    let is_fraction = match fraction.strip_prefix('.') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => fraction.is_empty(),
    };
    // `jiff` accepts offsets up to 25 hours.
    let is_offset = has_form(zone, "+00:00") && zone.get(1..3) < Some("24");
    let is_zone = zone.eq_ignore_ascii_case("z") || is_offset;
    (has_form(time, "0000-00-00T00:00:00") && is_fraction && is_zone)
        .then_some((time, fraction, zone))
}

/// A MAC is accepted only in the encoding that is set.
fn encoding(choice: u8, byte: u8, text: &[u8]) {
    let all = [
        Encoding::Hex,
        Encoding::HexOfAnyCase,
        Encoding::Base64,
        Encoding::Base64Url,
    ];
    let encoding = all[usize::from(choice) % all.len()];
    let mac = mac(b"body");
    let right = match encoding {
        Encoding::Base64 => BASE64.encode(&mac),
        Encoding::Base64Url => BASE64_URL.encode(&mac),
        _ => hex::encode(&mac),
    };
    let mut value = String::from_utf8_lossy(text)
        .replace("$mac", &right)
        .into_bytes();
    let place = usize::from(choice) / all.len();
    if let Some(changed) = value.get_mut(place).filter(|_| byte != 0) {
        *changed = byte;
    }
    let value = String::from_utf8_lossy(&value);
    let expected = match encoding {
        Encoding::HexOfAnyCase => value.eq_ignore_ascii_case(&right),
        _ => value == right,
    };
    let scheme = Hmac::hex(SIGNATURE).encoding(encoding);
    let provider = Provider::custom("acme")
        .signature(scheme, secret())
        .delivery_id(Source::body_digest());
    if let Some(head) = head(&[("x-signature", &value)]) {
        let verified = provider.verify(&head, b"body", now());
        assert_eq!(verified.is_ok(), expected, "{encoding:?} {value}");
    }
}

/// An id in a header is visible ASCII. Each line of the input is a header with an id.
fn id(text: &[u8]) {
    let Some(mut head) = signed_head() else {
        return;
    };
    let lines = text.split(|byte| *byte == b'\n');
    for value in lines.filter_map(|line| HeaderValue::from_bytes(line).ok()) {
        head.headers.append(ID, value);
    }
    let mut values = head.headers.get_all(ID).iter();
    let only = values.next().filter(|_| values.next().is_none());
    let expected = only
        .map(HeaderValue::as_bytes)
        .filter(|id| id.iter().all(u8::is_ascii_graphic));
    let expected = expected
        .and_then(|id| std::str::from_utf8(id).ok())
        .filter(|id| is_usable(id));
    let verified = acme(Source::header(ID)).verify(&head, b"", now());
    let verified = verified.as_ref().ok().and_then(Verified::delivery);
    assert_eq!(verified.map(|delivery| delivery.id().as_str()), expected);
}

/// The URL that Mandrill signs. The first line is the base that an application sets, and the rest is the path and the
/// query as received.
fn public_url(text: &[u8]) {
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (base, request) = text.split_at(end);
    let Some((base, url)) = std::str::from_utf8(base)
        .ok()
        .and_then(|base| Some((base, base.parse::<PublicUrl>().ok()?)))
    else {
        return;
    };
    let authority = base.split('/').nth(2).unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    // An empty port means the default port of the scheme, and a host with such an end is part of an address.
    assert!(
        port.is_empty() || port.ends_with(']') || digits(port).is_some(),
        "{base}"
    );
    let (head, _) = read_request(request);
    let mandrill = presets::mandrill(secret()).public_url(url);
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let expected = format!("{}{path}", base.trim_end_matches('/')).into_bytes();
    let content = mandrill.signed_content(&head, b"");
    assert_eq!(content.ok().flatten(), Some(expected), "{base} {head:?}");
}

/// A layer for some event types calls its handler for these types, and for events whose type it cannot read. The lines
/// of the input are the type and the action that qualifies it.
fn event_type(text: &[u8]) {
    const NAMES: [&str; 6] = [
        "customer.subscription.*",
        "invoice.*",
        "invoice.paid.late",
        "issues.*",
        "pull_request.opened",
        "push",
    ];
    let Some(mut head) = signed_head() else {
        return;
    };
    let lines = text.split(|byte| *byte == b'\n');
    for (name, line) in [TYPE, ACTION].into_iter().zip(lines) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            head.headers.insert(name, value);
        }
    }
    let read = |name: HeaderName| {
        let value = head.headers.get(name).map(HeaderValue::as_bytes)?;
        let text = value
            .iter()
            .all(|byte| *byte == b' ' || byte.is_ascii_graphic());
        let text = std::str::from_utf8(value)
            .ok()
            .filter(|value| text && is_usable(value));
        Some(text.map(str::to_owned))
    };
    let matches = |name: &str| {
        let is_of = |group: &str| {
            group
                .strip_suffix('*')
                .is_some_and(|group| name.starts_with(group))
        };
        NAMES.iter().any(|known| *known == name || is_of(known))
    };
    let expected = match (read(TYPE).flatten(), read(ACTION)) {
        (None, _) => true,
        (Some(name), None) => matches(&name),
        (Some(name), Some(Some(action))) => matches(&name) || matches(&format!("{name}.{action}")),
        // A type that cannot be read may be one that the handler is for.
        (Some(name), Some(None)) => {
            matches(&name)
                || NAMES
                    .iter()
                    .any(|known| known.starts_with(&format!("{name}.")))
        }
    };
    let provider = acme(Source::body_digest())
        .event_type(Source::header(TYPE))
        .event_action(Source::header(ACTION));
    let layer = VerifiedWebhook::new("acme", provider).only(NAMES);
    assert_eq!(
        is_handled(&layer, Request::from_parts(head.clone(), Bytes::new())),
        expected,
        "{head:?}"
    );
}

fn acme(id: Source) -> Provider {
    Provider::custom("acme")
        .signature(Hmac::hex(SIGNATURE), secret())
        .delivery_id(id)
}

/// The head of a request whose body is empty.
fn signed_head() -> Option<Parts> {
    head(&[("x-signature", &hex::encode(mac(b"")))])
}

/// `None` if these headers cannot be a head.
fn head(headers: &[(&str, &str)]) -> Option<Parts> {
    let request = headers
        .iter()
        .fold(Request::post("/"), |request, (name, value)| {
            request.header(*name, value.as_bytes())
        });
    Some(request.body(()).ok()?.into_parts().0)
}

fn mac(signed: &[u8]) -> Vec<u8> {
    let mac = hmac::Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key of any length");
    mac.chain_update(signed).finalize().into_bytes().to_vec()
}

fn secret() -> Secret {
    Secret::new(SECRET).expect("a secret")
}
