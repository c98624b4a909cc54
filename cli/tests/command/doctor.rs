//! `webhook doctor`: reports differences in the provider's subscription, with the right exit status, and never shows
//! the key.

use provider_apis::{Api, Hook, KEY, Refusal, SUBSCRIPTIONS};

use crate::run::{Run, run, run_in, shows_nothing_of};

const URL: &str = "https://example.com/webhooks";

/// Runs the command against the API of a provider, with the key in its variable, and with a secret that it does not
/// need.
async fn doctor(provider: &str, api: std::net::SocketAddr, more: &[&str]) -> Run {
    doctor_with(KEY, provider, api, more).await
}

async fn doctor_with(
    key: &'static str,
    provider: &str,
    api: std::net::SocketAddr,
    more: &[&str],
) -> Run {
    let api = format!("http://{api}");
    let of = match provider {
        "github" => &["--of", "octocat/hello-world"][..],
        "shopify" => &["--of", "acme.myshopify.com"],
        _ => &[],
    };
    let first = ["doctor", provider, "--url", URL, "--api", &api];
    let arguments: Vec<String> = [&first[..], of, more]
        .concat()
        .iter()
        .map(|&one| one.to_owned())
        .collect();
    let run = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run_in([("WEBHOOK_API_KEY", key)], &arguments, b"")
    });
    let run = run.await.unwrap();
    shows_nothing_of(key, &run);
    shows_nothing_of("a_signing_secret_of_the_provider", &run);
    run
}

/// For each provider, an event type, and how the provider's API writes it.
fn a_type(provider: &str) -> (&'static str, &'static str) {
    match provider {
        "github" => ("push", "push"),
        "paddle" => ("transaction.completed", "transaction.completed"),
        "shopify" => ("orders/create", "ORDERS_CREATE"),
        "stripe" => ("invoice.paid", "invoice.paid"),
        _ => ("user.created", "user.created"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn y2_the_doctor_ends_with_0_1_or_3_and_never_shows_the_key() {
    for provider in SUBSCRIPTIONS {
        let (api, address) = Api::start(provider).await;
        let (handled, subscribed) = a_type(provider);
        let events = ["--events", handled];

        let none = doctor(provider, address, &events).await;
        none.ends(1)
            .says(&format!("error: no subscription has the address {URL}"));

        api.set_hooks([Hook::new(1, URL, &[subscribed])]);
        let fine = doctor(provider, address, &events).await;
        fine.ends(0);
        assert_eq!(fine.out, "The subscription is as expected.\n", "{provider}");

        for refusal in [
            Refusal::TooMany(Some(3)),
            Refusal::Broken,
            Refusal::Html,
            Refusal::Malformed,
            Refusal::Echo,
        ] {
            api.refuse(refusal);
            let failed = doctor(provider, address, &events).await;
            failed.is_not_now("error: the provider could not be asked: ");
        }
        // The requested resource does not exist, and a later call would not find it either.
        api.refuse(Refusal::Unprocessable);
        let failed = doctor(provider, address, &events).await;
        failed.is_error("error: the provider could not be asked: ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn y2_a_hint_of_the_doctor_is_no_error() {
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["invoice.paid", "charge.updated"])]);
    let run = doctor("stripe", address, &["--events", "invoice.paid"]).await;
    run.ends(0);
    assert_eq!(
        run.out,
        "hint: charge.updated is subscribed and has no handler\n"
    );

    let ignore = ["--events", "invoice.paid", "--ignore", "charge.*"];
    let run = doctor("stripe", address, &ignore).await;
    run.ends(0);
    assert_eq!(run.out, "The subscription is as expected.\n");
    for (ignored, reason) in [
        ("invoice.paid", "--ignore: \"invoice.paid\""),
        ("charge*", "--ignore: \"charge*\""),
        ("a b", "--ignore: \"a b\" is not a type"),
    ] {
        let twice = ["--events", "invoice.paid", "--ignore", ignored];
        doctor("stripe", address, &twice).await.is_error(reason);
    }
    doctor("stripe", address, &["--ignore", "charge.*"])
        .await
        .is_error("--events");

    let versions = [
        "--events",
        "invoice.*,charge.updated",
        "--api-version",
        "2024-06-20",
    ];
    let run = doctor("stripe", address, &versions).await;
    run.ends(1)
        .says("error: events come in the default version of the account");
    // Types are not compared unless they are given.
    let run = doctor("stripe", address, &[]).await;
    run.ends(0);
    assert_eq!(
        run.out,
        "The subscription is as expected.\n\
         hint: types were not compared: name the types that have a handler with --events\n"
    );

    api.set_hooks([Hook::new(1, URL, &["*"]), Hook::new(2, URL, &["*"])]);
    doctor("stripe", address, &[])
        .await
        .ends(1)
        .says("several subscriptions");
    doctor("stripe", address, &["--several"]).await.ends(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn y2_an_api_key_that_is_refused_is_told_apart_from_an_outage() {
    for provider in SUBSCRIPTIONS {
        let (_api, address) = Api::start(provider).await;
        let run = doctor_with("another_key_of_the_api", provider, address, &[]).await;
        run.is_error("error: the provider has refused the API key of WEBHOOK_API_KEY: it is wrong");
        assert!(run.err.contains("401 Unauthorized"), "{}", run.err);
    }
}

#[test]
fn y2_the_doctor_refuses_what_it_cannot_ask() {
    let nowhere = ["--url", URL, "--api", "http://127.0.0.1:1"];
    let with = |more: &[&str]| {
        let run = run_in([("WEBHOOK_API_KEY", KEY)], &[more, &nowhere].concat(), b"");
        shows_nothing_of(KEY, &run);
        run
    };
    with(&["doctor", "stripe"])
        .is_not_now("the provider could not be asked: GET /v1/webhook_endpoints");
    with(&["doctor", "github"]).is_error("github needs --of with a repository or an organization");
    with(&["doctor", "stripe", "--of", "a"]).is_error("--of is not for stripe");
    with(&["doctor", "slack"]).is_error("the subscriptions of slack cannot be read");
    with(&["doctor", "strip"]).is_error("is it stripe?");
    with(&["doctor", "stripe", "--events", "invoice*"]).is_error("--events: \"invoice*\"");
    for name in [
        "ORDERS_CREATE",
        "orders_create",
        "Orders/Create",
        "orders.create",
    ] {
        let run = with(&[
            "doctor",
            "shopify",
            "--of",
            "acme.myshopify.com",
            "--events",
            name,
        ]);
        run.is_error(&format!("--events: {name:?} is not the name of an event"));
    }
    with(&[
        "doctor",
        "stripe",
        "--events",
        "invoice.paid, charge.dispute.*",
    ])
    .is_not_now("could not be asked");
    with(&["doctor", "stripe", "--events", "invoice.paid charge"])
        .is_error("--events: \"invoice.paid charge\" is not a type: types are separated by commas");
    let keyless = [&["doctor", "stripe"][..], &nowhere].concat();
    run(Some(KEY), &keyless, b"").is_error("give it in the environment variable WEBHOOK_API_KEY");
    let other = [&keyless[..], &["--key-env", "STRIPE_KEY"]].concat();
    run_in([("STRIPE_KEY", KEY)], &other, b"").is_not_now("could not be asked");
    for (key, reason) in [("", "it is blank"), (" ", "it is blank")] {
        let run = run_in([("WEBHOOK_API_KEY", key)], &keyless, b"");
        run.is_error(&format!(
            "the API key of WEBHOOK_API_KEY cannot be used: {reason}"
        ));
    }
    // This key can never be in a header.
    run_in([("WEBHOOK_API_KEY", "a\nb")], &keyless, b"").is_error("has refused the API key");
    for (url, reason) in [
        ("example.com/webhooks", "is not an HTTP URL"),
        (
            "https://b\u{fc}cher.example",
            "such as xn--bcher-kva.example",
        ),
    ] {
        let url = ["doctor", "stripe", "--url", url];
        run_in([("WEBHOOK_API_KEY", KEY)], &url, b"").is_error(reason);
    }
    let api = [
        "doctor",
        "stripe",
        "--url",
        URL,
        "--api",
        "http://api.example.com",
    ];
    run_in([("WEBHOOK_API_KEY", KEY)], &api, b"").is_error("it must be https://");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_shows_what_the_doctor_says() {
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["invoice.paid", "customer.updated"])]);
    let run = doctor(
        "stripe",
        address,
        &["--events", "invoice.paid,charge.dispute.*"],
    );
    let run = run.await;
    run.ends(1);
    let guide = include_str!("../../../src/documentation/subscriptions.md");
    assert!(guide.contains("--events 'invoice.paid,charge.dispute.*'"));
    assert!(
        guide.contains(&format!("```text\n{}```", run.out)),
        "{}",
        run.out
    );
}
