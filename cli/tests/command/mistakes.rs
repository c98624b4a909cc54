//! The tests make each of the usual mistakes, and the command must find and name it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::capture::Captured;
use crate::vectors::{KINDS, accepted};

const SECRET: &str = "k7Qw-2bZx-9LpV-3nTd";

/// A body with a number, a slash, a character that is not ASCII, and keys that are not sorted.
const EVENT: &str = r#"{"type":"a/b","id":"evt_1","data":{"name":"é","n":[1.50,null]}}"#;

#[track_caller]
fn is_found(captured: &Captured, change: &str) {
    let run = captured.verify();
    run.ends(1).says(&format!("\nIt verifies if {change}"));
    assert_eq!(run.out.matches("It verifies if").count(), 1);
}

#[test]
fn what_is_around_the_secret() {
    for provider in KINDS {
        let captured = accepted(provider).unwrap();
        captured.verify().ends(0);
        let secret = &captured.secret;
        let around = [
            (format!("{secret}\n"), "white space"),
            (format!(" {secret}\r\n"), "white space"),
            (format!("\"{secret}\""), "quotes"),
            (format!("'{secret}'"), "quotes"),
            (format!("'{secret}'\n"), "white space and the quotes"),
        ];
        for (secret, what) in around {
            let run = captured.with_secret(&secret).verify();
            // Some providers accept a key with white space around it.
            if run.code != 0 {
                run.ends(1)
                    .says(&format!("It verifies if the secret is without the {what}"));
            }
        }
    }
}

#[test]
fn the_prefix_of_the_secret() {
    let stripe = accepted("stripe").unwrap();
    let core = stripe.secret.trim_start_matches("whsec_");
    is_found(
        &stripe.with_secret(core),
        "the secret is with the prefix whsec_",
    );
    is_found(
        &stripe.with_secret(&format!("'{core}'")),
        "the secret is without the quotes or escapes around it, and with the prefix whsec_",
    );
    let github = Captured::of("github", SECRET, EVENT);
    is_found(
        &github.with_secret(&format!("whsec_{SECRET}")),
        "the secret is without its prefix",
    );
}

#[test]
fn a_secret_that_is_to_be_decoded_or_not() {
    let github = Captured::of("github", SECRET, EVENT);
    let slack = Captured::of("slack", SECRET, r#"{"event_id":"Ev1","type":"a"}"#);
    for captured in [&github, &slack] {
        is_found(
            &captured.with_secret(&BASE64.encode(SECRET)),
            "the secret is decoded from base64",
        );
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        is_found(
            &captured.with_secret(&hex),
            "the secret is decoded from hex",
        );
    }
    let encoded = BASE64.encode(SECRET);
    let standard = Captured::of("standard-webhooks", &encoded, EVENT);
    is_found(
        &standard.with_secret(SECRET),
        "the secret is encoded in base64",
    );
}

#[test]
fn json_that_was_written_again() {
    let spaced = r#"{"type": "a/b", "id": "evt_1", "data": {"name": "\u00e9", "n": [1.50, null]}}"#;
    let php = r#"{"type":"a\/b","id":"evt_1","data":{"name":"\u00e9","n":[1.50,null]}}"#;
    let sorted = r#"{"data":{"n":[1.50,null],"name":"é"},"id":"evt_1","type":"a/b"}"#;
    let pretty = |by: usize| {
        let json: serde_json::Value = serde_json::from_str(sorted).unwrap();
        let two = serde_json::to_string_pretty(&json).unwrap();
        two.replace("  ", &" ".repeat(by)).replace("1.5,", "1.50,")
    };
    let (two, four) = (pretty(2), pretty(4));
    for provider in ["github", "stripe", "shopify", "standard-webhooks"] {
        let secret = match provider {
            "standard-webhooks" => BASE64.encode(SECRET),
            _ => SECRET.to_owned(),
        };
        for (signed, received, change) in [
            (EVENT, spaced, "the body is written without any white space"),
            (
                EVENT,
                &*pretty(2),
                "the body is written without any white space",
            ),
            (
                spaced,
                EVENT,
                "the body is written with a space after each comma and each colon, as Python's json.dumps writes it, \
                 with \\u escapes for what is not ASCII",
            ),
            (
                php,
                EVENT,
                "the body is written without any white space, as JSON.stringify writes it, with escapes for slashes \
                 and for what is not ASCII, as PHP does",
            ),
            (
                sorted,
                EVENT,
                "the body is written without any white space, as JSON.stringify writes it, with its keys sorted",
            ),
            (
                &two,
                sorted,
                "the body is written with lines that are indented by 2",
            ),
            (
                &four,
                sorted,
                "the body is written with lines that are indented by 4",
            ),
            (
                r#"{"id":"evt_1","a":"\u003c\u0026"}"#,
                r#"{"id":"evt_1","a":"<&"}"#,
                "the body is written without any white space, as JSON.stringify writes it, with \\u escapes for <",
            ),
        ] {
            // If the provider does not sort the keys of its bodies, it does not send a sorted body.
            if signed == EVENT && received == pretty(2) {
                continue;
            }
            let captured = Captured::of(provider, &secret, signed);
            captured.verify().ends(0);
            is_found(&captured.with_body(received), change);
        }
    }
    let discord = accepted("discord").unwrap();
    let json: serde_json::Value = serde_json::from_slice(&discord.body).unwrap();
    let members: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members.len(), 3);
    let body = String::from_utf8(discord.body.clone()).unwrap();
    let body = body.replace(':', ": ").replace(',', ", ");
    is_found(
        &discord.with_body(body),
        "the body is written without any white space",
    );
}

#[test]
fn line_breaks() {
    let lines = "{\n\"id\":\"evt_1\"\n}";
    for provider in ["github", "stripe", "shopify"] {
        let captured = Captured::of(provider, SECRET, lines);
        let with = |body: String| captured.with_body(body);
        is_found(
            &with(format!("{lines}\n")),
            "the body has no line break at its end",
        );
        is_found(
            &with(format!("{lines}\r\n")),
            "the body has no line break at its end",
        );
        is_found(
            &with(format!("{lines} \n\n")),
            "the body has no white space at its end",
        );
        is_found(
            &with(lines.replace('\n', "\r\n")),
            "the lines of the body end with \\n in place of \\r\\n",
        );
        let crlf = lines.replace('\n', "\r\n");
        let signed = Captured::of(provider, SECRET, &crlf);
        is_found(
            &signed.with_body(lines),
            "the lines of the body end with \\r\\n in place of \\n",
        );
        for (end, change) in [
            ("\n", "the body has a line break (\\n) at its end"),
            ("\r\n", "the body has a line break (\\r\\n) at its end"),
        ] {
            let signed = Captured::of(provider, SECRET, &format!("{lines}{end}"));
            is_found(&signed.with_body(lines), change);
        }
        let chunked = format!("4\r\n{}\r\nc\r\n{}\r\n0\r\n\r\n", &lines[..4], &lines[4..]);
        assert_eq!(lines.len(), 16);
        is_found(
            &captured.with_body(chunked),
            "the body is put together from its chunks",
        );
    }
}

#[test]
fn the_url() {
    let form = "From=1&MessageUUID=m-1";
    // Twilio sorts the parameters after it has signed the URL.
    let signed = "/hooks?c=1&a=2&b=3";
    let sorted = Captured::at_url("twilio", SECRET, "https://example.com", signed, form)
        .with_path("/hooks?a=2&b=3&c=1");
    is_found(&sorted, "the URL is https://example.com/hooks?c=1&a=2&b=3");
    for provider in ["twilio", "plivo", "mandrill"] {
        let of = |base, path| Captured::at_url(provider, SECRET, base, path, form);
        let captured = of("https://example.com", "/hooks?a=1");
        captured.verify().ends(0);
        let right = "the URL is https://example.com/hooks?a=1";
        is_found(&captured.with_public_url(Some("http://example.com")), right);
        is_found(&captured.with_path("/hooks/?a=1"), right);
        is_found(&captured.with_path("/v1/hooks?a=1"), right);
        // The whole URL was given instead of the part before the path.
        let whole = Some("https://example.com/hooks");
        is_found(&captured.with_public_url(whole), right);
        // A proxy has forwarded the request to another host, and has removed the start of the path.
        let behind = captured
            .with_public_url(Some("http://10.0.0.1:8080"))
            .with_header("x-forwarded-host", "example.com");
        is_found(&behind, right);
        let stripped = of("https://example.com", "/hooks/sms?a=1")
            .with_path("/sms?a=1")
            .with_header("x-forwarded-prefix", "/hooks");
        is_found(&stripped, "the URL is https://example.com/hooks/sms?a=1");
        let original = captured
            .with_path("/?a=1")
            .with_header("x-original-uri", "/hooks?a=1");
        is_found(&original, right);
        is_found(
            &of("https://example.com", "/hooks").with_path("/hooks?b=2"),
            "the URL is https://example.com/hooks.\n",
        );

        // Without --public-url, the URL comes from the header Host.
        let unknown = captured.with_public_url(None);
        unknown
            .verify()
            .ends(1)
            .says("signature  FAILS: it covers the URL that the provider calls: give it with --public-url");
        let of_host = unknown.with_header("host", "example.com");
        of_host
            .verify()
            .ends(0)
            .says("the provider calls https://example.com and that path (from the header Host");
    }
}

#[test]
fn a_password_in_the_url_is_not_shown() {
    let mandrill = accepted("mandrill").unwrap();
    assert_eq!(
        mandrill.public_url.as_deref(),
        Some("https://user:pw@example.com")
    );
    let run = mandrill.verify();
    run.ends(0);
    assert!(!run.out.contains("user:pw"), "{}", run.out);
    let run = mandrill
        .with_public_url(Some("http://user:pw@example.com"))
        .verify();
    run.ends(1)
        .says("It verifies if the URL is https://<user>@example.com/m?x=1");
    assert!(!run.out.contains("user:pw"), "{}", run.out);
}

#[test]
fn headers() {
    let github = Captured::of("github", SECRET, EVENT);
    let mut renamed = github.clone();
    renamed.headers = github
        .headers
        .iter()
        .map(|(name, value)| {
            let name = name.as_str().replace('-', "_").parse().unwrap();
            (name, value.clone())
        })
        .collect();
    is_found(&renamed, "the names of its headers have - in place of _");
    renamed
        .verify()
        .says("headers    FAILS: header x-hub-signature-256 is missing");

    let mut dropped = github.clone();
    dropped.headers.remove("x-hub-signature-256");
    dropped
        .verify()
        .ends(1)
        .says("  x-github-delivery: there\n")
        .says("  x-hub-signature-256: missing\n")
        .says("None of the usual mistakes");

    let signature = github.headers["x-hub-signature-256"].clone();
    let mut twice = github.clone();
    twice
        .headers
        .append("x-hub-signature-256", signature.clone());
    is_found(&twice, "each header is there once");

    let quoted = format!("\"{}\"", signature.to_str().unwrap());
    is_found(
        &github.with_header("x-hub-signature-256", &quoted),
        "the values of its headers have no quotes around them",
    );
}

#[test]
fn another_provider() {
    let mut shopify = Captured::of("shopify", SECRET, EVENT);
    shopify.provider = "github".to_owned();
    is_found(&shopify, "the provider is shopify.");

    // Providers with the same scheme, but with the id in another place, are not named.
    let secret = BASE64.encode(SECRET);
    let mut standard = Captured::of("standard-webhooks", &secret, r#"{"a":1}"#);
    standard.provider = "stripe".to_owned();
    let run = standard.verify();
    run.ends(1).says("It verifies if the provider is ");
    assert!(!run.out.contains("anthropic"), "{}", run.out);
}

#[test]
fn what_fails_next_is_told() {
    let mut captured = Captured::of("stripe", SECRET, EVENT);
    captured.at = captured.at.map(|at| at + 3600);
    let run = captured.with_secret(&format!("{SECRET}\n")).verify();
    run.ends(1)
        .says("It verifies if the secret is without the white space around it")
        .says("Then the time fails: signed 3600 s ago");
}

#[test]
fn what_senders_and_programs_change() {
    let captured = Captured::of("github", SECRET, r#"{"name":"Zoë"}"#);
    captured.verify().ends(0);
    let empty = captured.with_body("").verify();
    empty.ends(1).says("The body is empty");
    assert!(!empty.out.contains("another secret"), "{}", empty.out);
    let signature = captured.headers["x-hub-signature-256"].to_str().unwrap();
    let bare = signature.strip_prefix("sha256=").unwrap().to_owned();
    let bare = captured.with_header("x-hub-signature-256", &bare);
    is_found(&bare, "its signature has sha256= before it");
    let latin = captured.with_body(b"{\"name\":\"Zo\xeb\"}".as_slice());
    is_found(&latin, "the body is in UTF-8");
    let with_line_break = format!("{SECRET}\n");
    let captured = Captured::of("github", &with_line_break, "{}").with_secret(SECRET);
    is_found(&captured, "the secret is with a line break at its end");
}

#[test]
fn what_is_seen_of_the_body() {
    let captured = Captured::of("github", SECRET, EVENT);
    let cut_off = captured.with_body(&EVENT.as_bytes()[..20]).verify();
    cut_off.ends(1).says("but not complete JSON");
    let latin = captured.with_body(b"{\"name\":\"Zo\xeb\",\"n\":1}".as_slice());
    latin.verify().ends(1).says("but not in UTF-8");
    let gzip = captured.with_body(b"\x1f\x8b\x08\x00".as_slice()).verify();
    gzip.ends(1).says("The body is compressed with gzip.");
    let right = captured.verify();
    assert!(!right.ends(0).out.contains("The body is"), "{}", right.out);
}

#[test]
fn only_the_older_signature() {
    let mut captured = Captured::of("github", SECRET, EVENT);
    captured.headers.remove("x-hub-signature-256");
    let sha1 = captured.with_header("x-hub-signature", "sha1=00");
    sha1.verify()
        .ends(1)
        .says("It only has the older signature, with SHA-1");
    let intercom = Captured::of("intercom", SECRET, r#"{"id":"1","topic":"t"}"#);
    let run = intercom.with_secret("b8Xr-4mQz-7KdT-1wHs").verify();
    assert!(
        !run.ends(1).out.contains("the older signature, with SHA-1"),
        "{}",
        run.out
    );
}

#[test]
fn a_header_of_another_name() {
    let shopify = Captured::of("shopify", SECRET, EVENT);
    let mut renamed = shopify.clone();
    let signature = renamed.headers.remove("shopify-hmac-sha256").unwrap();
    let renamed = renamed.with_header("x-shopify-signature", signature.to_str().unwrap());
    is_found(
        &renamed,
        "its header x-shopify-signature is named shopify-hmac-sha256",
    );
}

#[test]
fn a_signature_in_another_encoding() {
    let change = |captured: &Captured, name: &'static str, to: &dyn Fn(&str) -> String| {
        let value = captured.headers[name].to_str().unwrap().to_owned();
        captured.with_header(name, &to(&value))
    };
    let github = Captured::of("github", SECRET, EVENT);
    let base64 = change(&github, "x-hub-signature-256", &|value| {
        let digits = hex::decode(value.strip_prefix("sha256=").unwrap()).unwrap();
        format!("sha256={}", BASE64.encode(digits))
    });
    is_found(
        &base64,
        "its signature is in hexadecimal digits in place of base64",
    );
    let shopify = Captured::of("shopify", SECRET, EVENT);
    let digits = change(&shopify, "shopify-hmac-sha256", &|value| {
        hex::encode(BASE64.decode(value).unwrap())
    });
    is_found(
        &digits,
        "its signature is in base64 in place of hexadecimal digits",
    );
}

#[test]
fn json_that_java_or_dotnet_have_written() {
    for (signed, change) in [
        (
            r#"{"id":"1","name":"\uD83E\uDD80 a+b"}"#,
            ", with \\u escapes in upper case for what is not ASCII, as Java does",
        ),
        (
            r#"{"id":"1","name":"\uD83E\uDD80 a\u002Bb"}"#,
            ", with \\u escapes in upper case for quotes, HTML and what is not ASCII, as .NET does",
        ),
    ] {
        let change = format!(
            "the body is written without any white space, as JSON.stringify writes it{change}"
        );
        let captured = Captured::of("github", SECRET, signed);
        is_found(
            &captured.with_body(r#"{"id":"1","name":"🦀 a+b"}"#),
            &change,
        );
    }
    let captured = Captured::of(
        "github",
        SECRET,
        r#"{"id":"1","amount":1.50,"tax":0.05,"n":2}"#,
    );
    is_found(
        &captured.with_body(r#"{"id":"1","amount":1.5,"tax":0.05,"n":2}"#),
        "the body is written without any white space, as JSON.stringify writes it, with two digits after each decimal \
         point",
    );
}
