//! How the command is called: where the secret comes from, errors, and help.

use crate::capture::Captured;
use crate::run::{run, shows_nothing_of, webhook};

const SECRET: &str = "a-secret-of-the-webhook";

#[test]
fn the_secret_comes_from_an_argument_a_variable_or_standard_input() {
    let captured = Captured::of("github", SECRET, r#"{"a":1}"#);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("capture.http");
    std::fs::write(&file, captured.text()).unwrap();
    let verify = ["verify", "github", file.to_str().unwrap()];

    let of = |more: &[&str], variable: Option<&str>, stdin: &[u8]| {
        let run = run(variable, &[&verify, more].concat(), stdin);
        shows_nothing_of(SECRET, &run);
        run
    };
    of(&["--secret", SECRET], None, b"").ends(0);
    of(&[], Some(SECRET), b"").ends(0);
    of(&["--secret-env", "WEBHOOK_SECRET"], Some(SECRET), b"").ends(0);
    // The line break of `echo` is not a mistake.
    of(
        &["--secret", "-"],
        Some("another"),
        format!("{SECRET}\n").as_bytes(),
    )
    .ends(0);
    of(&["--secret", SECRET], Some("another"), b"").ends(0);
    of(&["--secret", "another"], None, b"").ends(1);

    of(&[], None, b"").is_error(
        "the secret is missing: give it in the environment variable WEBHOOK_SECRET, or with --secret",
    );
    of(&["--secret-env", "NOT_SET"], Some(SECRET), b"").is_error("variable NOT_SET");
    of(&[], Some(" "), b"").is_error("it is blank");
    let both = ["verify", "github", "-", "--secret", "-"];
    webhook(SECRET, &both, b"").is_error("standard input cannot be both");
}

#[test]
fn wrong_usage_is_told() {
    let nowhere = ["--to", "http://127.0.0.1:1/"];
    webhook(SECRET, &["verify", "strip", "-"], b"").is_error("is it stripe?");
    webhook(SECRET, &["verify", "standard_webhook", "-"], b"").is_error("is it standard-webhooks?");
    webhook(SECRET, &["verify", "github", "-"], b"{}").is_error("is no captured request");
    webhook(SECRET, &["verify", "github", "not-there"], b"").is_error("cannot read not-there");
    webhook(SECRET, &["verify", "github", "-", "--at", "noon"], b"").is_error("noon");
    let url = ["verify", "twilio", "-", "--public-url", "example.com"];
    webhook(SECRET, &url, b"").is_error("https:// or http://");
    let again = ["replay", "-", "--secret-env", "A"];
    let plain = b"POST / HTTP/1.1\n\n";
    webhook(SECRET, &[&again[..], &nowhere].concat(), plain).is_error("unless --provider names");

    let send = [&["send", "github"][..], &nowhere].concat();
    let with = |more: &[&str]| webhook(SECRET, &[&send[..], more].concat(), b"");
    with(&["--times", "0"]).is_error("'--times <N>'");
    with(&["--tampered", "--unsigned"]).is_error("cannot be used with");
    with(&["--distinct", "--id", "a"]).is_error("cannot be used with");
    with(&["--id", "a\nb"]).is_error("it would not fit in a header");
    with(&["--header", "no colon"]).is_error("it has no colon");
    with(&["--expired"]).is_error("github signs no time, so its requests do not expire");
    with(&[]).is_not_now("no answer from 127.0.0.1:1: Connection refused");
    // If nothing listens, only a few requests are sent.
    with(&["--times", "4000000000"]).is_not_now("Connection refused");

    let stripe = ["send", "stripe", "--body", "-"];
    let stripe = [&stripe[..], &nowhere].concat();
    webhook(SECRET, &stripe, b"[]").is_error("stripe has the id in the body, and this body");
    webhook("sk_test_secret", &stripe, b"{}").is_error("it is a Stripe API key");
}

#[test]
fn another_machine_is_not_sent_to_by_mistake() {
    for (to, told) in [
        ("http://192.0.2.1/", "192.0.2.1 is not this machine"),
        ("http://localhost.example.com/", "is not this machine"),
        ("https://127.0.0.1/", "https:// is only for --canary"),
        ("127.0.0.1:3000", "it must start with http://"),
        ("http://a:b@127.0.0.1/", "it has a user name"),
    ] {
        webhook(SECRET, &["send", "github", "--to", to], b"").is_error(told);
    }
}

#[test]
fn help_warns_of_arguments() {
    let run = run(None, &["--help"], b"");
    run.ends(0)
        .says("Other users of the machine see the arguments");
}

#[test]
fn the_providers_are_listed() {
    let all = run(None, &["providers"], b"");
    all.ends(0);
    let is_row = |line: &&str| line.starts_with("github ") || line.starts_with("stripe ");
    let rows: Vec<_> = all.out.lines().filter(is_row).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0].contains("HMAC-SHA256 in hex, x-hub-signature-256"));
    assert!(rows[0].ends_with("header x-github-delivery"));
    assert_eq!(
        all.out.lines().count(),
        idempotent_webhook::presets::ALL.len() + 3
    );

    let svix = run(None, &["providers", "svix"], b"");
    svix.ends(0)
        .says("secret          not any text: Standard Webhooks needs `whsec_`")
        .says("covers          the body, a time, the delivery id\n")
        .says("presets/fn.svix.html");
    // GitHub does not deliver again by itself, only by hand.
    run(None, &["providers", "github"], b"")
        .ends(0)
        .says("redelivery      at most 3 days after the first attempt, by itself or by hand\n");
    run(None, &["providers", "svi"], b"").is_error("is it svix?");
}
