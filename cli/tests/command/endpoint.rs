//! `webhook send` and `webhook replay` as processes, against a real endpoint.

use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Redirect;
use axum::routing::{any, post};
use idempotent_webhook::provider::SecretSource;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{JsonPath, Provider, Secret, Source, presets};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::application::{Application, Rows, serve};

const SECRET: &str = "whsec_test_secret";

/// The output of a run, and its exit status.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    /// How many responses had this status and outcome.
    fn answers(&self, status: &str, outcome: &str) -> usize {
        let of_table = |line: &str| {
            let cells: Vec<_> = line.split_whitespace().collect();
            let is_row = cells.len() == 6 && cells[..2] == [status, outcome];
            is_row.then(|| cells[2].parse::<usize>().unwrap())
        };
        self.out.lines().find_map(of_table).unwrap_or_default()
    }

    #[track_caller]
    fn ends(&self, code: i32, verdict: &str) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert_eq!(self.out.lines().last(), Some(verdict));
        assert_eq!(self.err, "");
    }

    #[track_caller]
    fn is_error(&self, message: &str) {
        self.fails(2, message);
    }

    #[track_caller]
    fn is_not_now(&self, message: &str) {
        self.fails(3, message);
    }

    #[track_caller]
    fn fails(&self, code: i32, message: &str) {
        assert_eq!(
            (self.code, self.out.as_str(), self.err.as_str()),
            (code, "", format!("error: {message}\n").as_str())
        );
    }
}

async fn webhook_as(secret: &str, arguments: &[&str], stdin: &str) -> Run {
    let mut running = Command::new(env!("CARGO_BIN_EXE_webhook"))
        .args(arguments)
        .kill_on_drop(true)
        .env("WEBHOOK_SECRET", secret)
        // Nothing listens at this address, so a run that uses a proxy fails.
        .env("http_proxy", "http://127.0.0.1:1")
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may have ended without reading its input.
    let _ = running
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .await;
    let Output {
        status,
        stdout,
        stderr,
    } = running.wait_with_output().await.unwrap();
    let run = Run {
        code: status.code().unwrap(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    };
    assert!(!run.out.contains(secret) && !run.err.contains(secret));
    run
}

async fn webhook(arguments: &[&str], stdin: &str) -> Run {
    webhook_as(SECRET, arguments, stdin).await
}

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

async fn stripe() -> Application {
    Application::serve(presets::stripe(secret())).await
}

/// The smallest possible Stripe event.
fn stripe_event(id: &str) -> String {
    format!(r#"{{"id":"{id}","object":"event","type":"invoice.paid"}}"#)
}

const ONCE: &str = "As expected: every answer 2xx, and at most one of them processed.";
const NOT_ONCE: &str =
    "Not as expected. Expected: every answer 2xx, and at most one of them processed.";
const DISTINCT: &str = "As expected: every answer 2xx, and none of them duplicate.";
const NOT_DISTINCT: &str =
    "Not as expected. Expected: every answer 2xx, and none of them duplicate.";
const REFUSED: &str = "As expected: every answer 401.";
const NOT_REFUSED: &str = "Not as expected. Expected: every answer 401.";

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_sent_again_is_processed_once() {
    let app = stripe().await;
    let url = &app.url;
    let send = ["send", "stripe", "--to", url, "--body", "-"];
    let twice = [&send[..], &["--times", "2"]].concat();

    let run = webhook(&twice, &stripe_event("evt_1")).await;
    run.ends(0, ONCE);
    let heading = format!("stripe delivery \"evt_1\", 2 times, one after another, to {url}");
    assert_eq!(run.out.lines().next(), Some(heading.as_str()));
    assert_eq!(run.answers("200", "processed"), 1);
    assert_eq!(run.answers("200", "duplicate"), 1);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 1,
            effects: 1
        }
    );

    let again = webhook(&send, &stripe_event("evt_1")).await;
    again.ends(0, ONCE);
    assert_eq!(again.answers("200", "duplicate"), 1);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 1,
            effects: 1
        }
    );

    // An id that differs from the one in the body.
    let other = [&twice[..], &["--id", "evt_2"]].concat();
    let run = webhook(&other, &stripe_event("evt_1")).await;
    run.ends(0, ONCE);
    assert!(run.out.contains("\"evt_2\""), "{}", run.out);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 2,
            effects: 2
        }
    );

    // A body without an id gets one.
    webhook(&twice, "{}").await.ends(0, ONCE);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 3,
            effects: 3
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_at_the_same_moment_are_processed_once() {
    let app = stripe().await;
    let url = &app.url;
    let send = ["send", "stripe", "--to", url, "--body", "-"];
    let many = [&send[..], &["--times", "50", "--concurrency", "10"]].concat();
    let run = webhook(&many, &stripe_event("evt_1")).await;
    run.ends(0, ONCE);
    assert!(run.out.contains(", 50 times, 10 at once, "), "{}", run.out);
    assert_eq!(run.answers("200", "processed"), 1);
    assert_eq!(run.answers("200", "duplicate"), 49);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 1,
            effects: 1
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn distinct_deliveries_are_processed_each() {
    let app = stripe().await;
    let url = &app.url;
    let distinct = ["--distinct", "--times", "3", "--concurrency", "2"];
    let send = ["send", "stripe", "--to", url, "--body", "-"];
    let run = webhook(&[&send[..], &distinct].concat(), &stripe_event("evt_1")).await;
    run.ends(0, DISTINCT);
    assert_eq!(run.answers("200", "processed"), 3);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 3,
            effects: 3
        }
    );

    // This endpoint reads the same id from all bodies.
    let object: JsonPath = "$.object".parse().unwrap();
    let constant = presets::stripe(secret()).delivery_id(Source::json(object));
    let app = Application::serve(constant).await;
    let url = &app.url;
    let send = ["send", "stripe", "--to", url, "--body", "-"];
    let run = webhook(&[&send[..], &distinct].concat(), &stripe_event("evt_1")).await;
    run.ends(1, NOT_DISTINCT);
    assert_eq!(run.answers("200", "duplicate"), 2);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 1,
            effects: 1
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_did_not_sign_or_long_ago_is_refused() {
    let app = stripe().await;
    let url = &app.url;
    for fault in ["--tampered", "--expired", "--unsigned"] {
        let send = ["send", "stripe", "--to", url, "--times", "2", fault];
        let run = webhook(&send, "").await;
        run.ends(0, REFUSED);
        assert_eq!(run.answers("401", "rejected"), 2);
    }
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 0,
            effects: 0
        }
    );

    // An endpoint that checks nothing.
    let careless = serve(Router::new().route("/", any(StatusCode::OK))).await;
    let send = ["send", "stripe", "--to", &careless, "--tampered"];
    webhook(&send, "").await.ends(1, NOT_REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_not_as_expected() {
    let app = stripe().await;
    let url = &app.url;
    let send = ["send", "stripe", "--to", url];
    let run = webhook_as("of-somebody-else", &send, "").await;
    run.ends(1, NOT_ONCE);
    assert_eq!(run.answers("401", "rejected"), 1);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 0,
            effects: 0
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_is_sent_as_it_is() {
    // White space and an escape that would be lost if JSON were written again.
    let body = "{ \"a\" : \"\\u00e9\" }\n";
    let request = TestDelivery::new(&presets::github(secret()))
        .id("a")
        .body(body)
        .request::<Bytes>();
    let mut captured = "POST /elsewhere HTTP/1.1\nHost: example.com\nConnection: keep-alive, X-Hop\nX-Hop: 1\n\
                        Transfer-Encoding: chunked\nX-Several: a\nX-Several: b\nX-GitHub-Event: push\n"
        .to_owned();
    for (name, value) in request.headers() {
        let value = value.to_str().unwrap();
        captured.push_str(&format!("{name}: {value}\n"));
    }
    captured.push('\n');
    captured.push_str(body);

    let app = Application::serve(presets::github(secret())).await;
    let url = &app.url;
    let run = webhook(&["replay", "-", "--to", url, "--times", "3"], &captured).await;
    run.ends(0, ONCE);
    assert!(run.out.starts_with("a capture, 3 times, "), "{}", run.out);
    assert_eq!(run.answers("200", "processed"), 1);
    assert_eq!(run.answers("200", "duplicate"), 2);
    assert_eq!(
        app.rows().await,
        Rows {
            claims: 1,
            effects: 1
        }
    );

    // Checks what the endpoint receives.
    let (looking, mut seeing) = look().await;
    let put = captured.replacen("POST", "PUT", 1);
    let run = webhook(&["replay", "-", "--to", &looking], &put).await;
    run.ends(0, ONCE);
    let (head, seen) = seeing.recv().await.unwrap();
    assert_eq!((head.method.as_str(), &*seen), ("PUT", body.as_bytes()));
    assert_eq!(head.headers["content-length"], body.len().to_string());
    assert!(looking.contains(head.headers["host"].to_str().unwrap()));
    let several: Vec<_> = head.headers.get_all("x-several").iter().collect();
    assert_eq!(several, ["a", "b"]);
    let mut names: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "content-length",
            "content-type",
            "host",
            "x-github-delivery",
            "x-github-event",
            "x-hub-signature-256",
            "x-several",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_preset_takes_what_is_sent_for_it() {
    type Preset = fn(SecretSource) -> Provider;
    const BASE64: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let presets: [(&str, Preset); 8] = [
        ("stripe", presets::stripe),
        ("github", presets::github),
        ("shopify", presets::shopify),
        ("slack", presets::slack),
        ("linear", presets::linear),
        ("standard-webhooks", presets::standard_webhooks),
        ("svix", presets::svix),
        ("awardee", presets::awardee),
    ];
    for (name, preset) in presets {
        let keys = Secret::new(BASE64).unwrap().into();
        let app = Application::serve(preset(keys)).await;
        let url = &app.url;
        let send = ["send", name, "--to", url, "--times", "2"];
        let once = [&send[..], &["--event", "a.type"]].concat();
        webhook_as(BASE64, &once, "").await.ends(0, ONCE);
        assert_eq!(
            app.rows().await,
            Rows {
                claims: 1,
                effects: 1
            },
            "{name}"
        );

        let distinct = [&send[..], &["--distinct"]].concat();
        webhook_as(BASE64, &distinct, "").await.ends(0, DISTINCT);
        assert_eq!(
            app.rows().await,
            Rows {
                claims: 3,
                effects: 3
            },
            "{name}"
        );

        let expired = [&send[..], &["--expired"]].concat();
        let run = webhook_as(BASE64, &expired, "").await;
        match name {
            "github" | "shopify" => {
                run.is_error(&format!(
                    "{name} signs no time, so its requests do not expire"
                ));
            }
            _ => run.ends(0, REFUSED),
        }
        assert_eq!(
            app.rows().await,
            Rows {
                claims: 3,
                effects: 3
            },
            "{name}"
        );
    }
}

/// An endpoint that answers 200 and passes on the requests that it receives.
async fn look() -> (String, mpsc::Receiver<(Parts, Bytes)>) {
    let (seen, seeing) = mpsc::channel(2);
    let look = async move |request: Request| {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 1000).await.unwrap();
        seen.send((head, body)).await.unwrap();
    };
    (serve(Router::new().route("/", any(look))).await, seeing)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_says_its_id_is_sent_to_the_byte_with_further_headers() {
    let (url, mut seeing) = look().await;
    let body = "{ \"type\" : \"a\", \"id\" : \"evt_1\" }\n";
    let send = ["send", "stripe", "--to", &url, "--body", "-"];
    let header = ["--header", "X-More: a:b"];
    for id in [&[][..], &["--id", "evt_1"]] {
        let arguments = [&send[..], &header, id].concat();
        webhook(&arguments, body).await.ends(0, ONCE);
        let (head, seen) = seeing.recv().await.unwrap();
        assert_eq!(seen, body);
        assert_eq!(head.headers["x-more"], "a:b");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_layer_the_status_alone_counts() {
    let router = Router::new()
        .route("/", post(StatusCode::ACCEPTED))
        .route("/moved", post(async || Redirect::temporary("/")));
    let url = serve(router).await;
    let send = ["send", "github", "--times", "2", "--to"];
    let note = "\nNo answer has x-webhook-outcome: the endpoint is not behind \
                idempotent-webhook, so its answers are judged by the status alone.\n";

    let run = webhook(&[&send[..], &[&url]].concat(), "").await;
    run.ends(0, ONCE);
    assert_eq!(run.answers("202", "-"), 2);
    assert!(run.out.contains(note), "{}", run.out);

    // Responses that the layer would not give to one delivery.
    let says = async || [("x-webhook-outcome", "processed")];
    let processing = serve(Router::new().route("/", post(says))).await;
    let run = webhook(&[&send[..], &[&processing]].concat(), "").await;
    run.ends(1, NOT_ONCE);
    assert_eq!(run.answers("200", "processed"), 2);
    assert!(!run.out.contains(note), "{}", run.out);

    // A redirect counts as an answer, and is not followed.
    let moved = format!("{url}moved");
    let run = webhook(&[&send[..], &[&moved]].concat(), "").await;
    run.ends(1, NOT_ONCE);
    assert_eq!(run.answers("307", "-"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_told() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let first_only = async || {
        if CALLS.fetch_add(1, Ordering::Relaxed) > 0 {
            std::future::pending::<()>().await;
        }
    };
    let url = serve(Router::new().route("/", post(first_only))).await;
    let send = [
        "send",
        "github",
        "--times",
        "2",
        "--timeout",
        "1",
        "--to",
        &url,
    ];
    let run = webhook(&send, "").await;
    run.ends(1, NOT_ONCE);
    assert_eq!(run.answers("200", "-"), 1);
    let none = "-       -                1  no answer: timed out\n";
    assert!(run.out.contains(none), "{}", run.out);

    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let run = webhook(&send, "").await;
    run.is_not_now(&format!("no answer from {host}: timed out"));
}
