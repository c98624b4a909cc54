//! The example `replay`, as a process, at a real endpoint.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Redirect;
use axum::routing::{any, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use idempotent_webhook::provider::SecretSource;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{JsonPath, Provider, Secret, Source, presets};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::{OnceCell, mpsc};

use crate::support::{
    SECRET, TestApp, assert_rows, github_delivery, secret, stripe_event, write_effect,
};

/// Builds the example in the profile of the tests, for `cargo test --test it` does not, and
/// asks cargo where it is.
async fn program() -> &'static str {
    static PROGRAM: OnceCell<String> = OnceCell::const_new();
    PROGRAM
        .get_or_init(async || {
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
            // <target>/<profile>/deps/<test>
            let test = std::env::current_exe().unwrap();
            let profile = test.ancestors().nth(2).unwrap().file_name().unwrap();
            let profile = match profile.to_str().unwrap() {
                "debug" => "dev",
                other => other,
            };
            let built = Command::new(env!("CARGO"))
                .args(["build", "--example", "replay", "--profile", profile])
                .arg("--message-format=json-render-diagnostics")
                .arg("--target-dir")
                .arg(target)
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .stderr(Stdio::inherit())
                .output()
                .await
                .unwrap();
            assert!(built.status.success());
            String::from_utf8(built.stdout)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .filter(|message| message["target"]["name"] == "replay")
                .find_map(|message| Some(message["executable"].as_str()?.to_owned()))
                .unwrap()
        })
        .await
}

/// What a run has said, and its exit code.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    /// How many lines of the table have this status and outcome.
    fn answers(&self, status: &str, outcome: &str) -> usize {
        let of_table = |line: &&str| {
            let cells: Vec<_> = line.split_whitespace().collect();
            cells.len() == 4 && cells[1..3] == [status, outcome]
        };
        self.out.lines().filter(of_table).count()
    }

    #[track_caller]
    fn ends(&self, code: i32, verdict: &str) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert_eq!(self.out.lines().last(), Some(verdict));
        assert_eq!(self.err, "");
    }

    #[track_caller]
    fn is_error(&self, message: &str) {
        assert_eq!(
            (self.code, self.out.as_str(), self.err.as_str()),
            (2, "", format!("error: {message}\n").as_str())
        );
    }
}

/// Runs it with a secret in the environment.
async fn replay_as(secret: Option<&str>, arguments: &[&str], stdin: &str) -> Run {
    let mut command = Command::new(program().await);
    command
        .args(arguments)
        .kill_on_drop(true)
        .env_remove("WEBHOOK_SECRET")
        // Nobody is there: a run that asks a proxy fails.
        .env("http_proxy", "http://127.0.0.1:1")
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(secret) = secret {
        command.env("WEBHOOK_SECRET", secret);
    }
    let mut running = command.spawn().unwrap();
    // It may have ended by now without having read it.
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
    assert!(!run.out.contains(SECRET) && !run.err.contains(SECRET));
    run
}

async fn replay(arguments: &[&str], stdin: &str) -> Run {
    replay_as(Some(SECRET), arguments, stdin).await
}

async fn stripe() -> (TestApp, String) {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    let url = format!("http://{}/", app.serve().await);
    (app, url)
}

/// A file in a directory that is deleted with it.
fn file(content: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.json");
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

const ONCE: &str =
    "As expected: every answer 2xx, at most one of them processed and the rest duplicate.";
const NOT_ONCE: &str = "Not as expected, which is: every answer 2xx, at most one of them \
                        processed and the rest duplicate.";
const FRESH: &str = "As expected: every answer 2xx, none of them duplicate.";
const NOT_FRESH: &str = "Not as expected, which is: every answer 2xx, none of them duplicate.";
const REFUSED: &str = "As expected: every answer 401.";
const NOT_REFUSED: &str = "Not as expected, which is: every answer 401.";

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_sent_again_is_processed_once() {
    let (app, url) = stripe().await;
    let (_directory, body) = file(&stripe_event("evt_1"));
    let stripe = ["--provider", "stripe", "--url", &url, &body];

    let run = replay(&stripe, "").await;
    run.ends(0, ONCE);
    let heading = format!("stripe delivery \"evt_1\", 2 times, one after another, to {url}");
    assert_eq!(run.out.lines().next(), Some(heading.as_str()));
    assert_eq!(run.answers("200", "processed"), 1);
    assert_eq!(run.answers("200", "duplicate"), 1);
    assert!(run.out.contains("\nby status:  200: 2\n"), "{}", run.out);
    assert!(
        run.out
            .contains("\nby outcome: duplicate: 1, processed: 1\n"),
        "{}",
        run.out
    );
    assert!(run.out.contains("\nmedian ms:  "), "{}", run.out);
    assert_rows!(app.database, claims: 1, effects: 1);

    // It was processed before, so there is nothing to compare.
    let again = replay(&stripe, "").await;
    again.ends(0, ONCE);
    assert_eq!(again.answers("200", "duplicate"), 2);
    assert!(!again.out.contains("median"), "{}", again.out);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_at_the_same_moment_are_processed_once() {
    let (app, url) = stripe().await;
    let (_directory, body) = file(&stripe_event("evt_1"));
    let run = replay_as(
        None,
        &[
            "--provider",
            "stripe",
            "--url",
            &url,
            "--secret",
            SECRET,
            "--times",
            "5",
            "--concurrency",
            "5",
            &body,
        ],
        "",
    )
    .await;
    run.ends(0, ONCE);
    assert!(run.out.contains(", 5 times, 5 at once, "), "{}", run.out);
    assert_eq!(run.answers("200", "processed"), 1);
    assert_eq!(run.answers("200", "duplicate"), 4);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_comes_from_standard_input_and_the_id_from_the_command_line() {
    let (app, url) = stripe().await;
    let stripe = ["--provider", "stripe", "--url", &url];
    for more in [&["--id", "evt_2"][..], &["--id", "evt_2", "-"]] {
        let run = replay(&[&stripe, more].concat(), &stripe_event("evt_1")).await;
        run.ends(0, ONCE);
        assert!(run.out.contains("\"evt_2\""), "{}", run.out);
    }
    assert_rows!(app.database, claims: 1, effects: 1);

    // A body without an id is given one.
    replay(&stripe, "{}").await.ends(0, ONCE);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_ids_are_processed_each() {
    let (app, url) = stripe().await;
    let fresh = [
        "--provider",
        "stripe",
        "--url",
        &url,
        "--fresh-ids",
        "--times",
        "3",
        "--concurrency",
        "2",
    ];
    let run = replay(&fresh, &stripe_event("evt_1")).await;
    run.ends(0, FRESH);
    assert_eq!(run.answers("200", "processed"), 3);
    assert_rows!(app.database, claims: 3, effects: 3);

    // The ids of this endpoint are all the same.
    let object: JsonPath = "$.object".parse().unwrap();
    let constant = presets::stripe(secret()).delivery_id(Source::json(object));
    let app = TestApp::of(constant, write_effect).await;
    let url = format!("http://{}/", app.serve().await);
    let fresh = ["--provider", "stripe", "--url", &url, "--fresh-ids"];
    let run = replay(&fresh, &stripe_event("evt_1")).await;
    run.ends(1, NOT_FRESH);
    assert_eq!(run.answers("200", "duplicate"), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_did_not_sign_or_long_ago_is_refused() {
    let (app, url) = stripe().await;
    for fault in ["--tampered", "--expired", "--unsigned"] {
        let run = replay(
            &["--provider", "stripe", "--url", &url, fault],
            &stripe_event("evt_1"),
        )
        .await;
        run.ends(0, REFUSED);
        assert_eq!(run.answers("401", "rejected"), 2);
    }
    assert_rows!(app.database, claims: 0, effects: 0);

    // An endpoint that looks at nothing.
    let careless = serve(Router::new().route("/", any(StatusCode::OK))).await;
    let arguments = ["--provider", "stripe", "--url", &careless, "--tampered"];
    replay(&arguments, "{}").await.ends(1, NOT_REFUSED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_not_as_expected() {
    let (app, url) = stripe().await;
    let stripe = ["--provider", "stripe", "--url", &url];
    let run = replay_as(Some("another"), &stripe, &stripe_event("evt_1")).await;
    run.ends(1, NOT_ONCE);
    assert_eq!(run.answers("401", "rejected"), 2);
    assert!(
        run.out.contains("the endpoint has another secret"),
        "{}",
        run.out
    );
    assert_rows!(app.database, claims: 0, effects: 0);

    // That of the command line wins.
    let stripe = [&stripe[..], &["--secret", SECRET]].concat();
    let run = replay_as(Some("another"), &stripe, &stripe_event("evt_1")).await;
    run.ends(0, ONCE);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The JSON form of a request, with headers that are not to be sent.
fn captured(delivery: &TestDelivery) -> Value {
    let request = delivery.request::<Bytes>();
    let mut headers = json!({
        "Host": "example.com",
        "Content-Length": "1",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "Transfer-Encoding": "chunked",
        "X-Several": ["a", "b"],
    });
    for (name, value) in request.headers() {
        headers[name.as_str()] = value.to_str().unwrap().into();
    }
    json!({
        "method": "POST",
        "headers": headers,
        "body": std::str::from_utf8(request.body()).unwrap(),
        "received_at": "2026-01-01",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_is_sent_as_it_is() {
    // White space and an escape that another writer of JSON would not keep.
    let body = "{ \"a\" : \"\\u00e9\" }\n";
    let push = github_delivery().id("a").body(body);
    let mut text = captured(&push);
    text["headers"]["X-Github-Event"] = "push".into();
    let mut base64 = text.clone();
    base64["body"].take();
    base64["body_base64"] = BASE64.encode(body).into();

    let app = TestApp::github(write_effect).await;
    let url = format!("http://{}/", app.serve().await);
    for capture in [&text, &base64] {
        let (_directory, file) = file(&capture.to_string());
        let arguments = ["--capture", &file, "--url", &url, "--times", "3"];
        let run = replay_as(None, &arguments, "").await;
        run.ends(0, ONCE);
        assert!(run.out.starts_with("a capture, 3 times, "), "{}", run.out);
        assert_eq!(
            run.answers("200", "processed") + run.answers("200", "duplicate"),
            3
        );
    }
    let from_stdin = ["--capture", "-", "--url", &url];
    replay(&from_stdin, &text.to_string()).await.ends(0, ONCE);
    assert_rows!(app.database, claims: 1, effects: 1);

    // What the endpoint sees of it.
    let (looking, mut seeing) = look().await;
    let mut put = text.clone();
    put["method"] = "PUT".into();
    let from_stdin = ["--capture", "-", "--url", &looking, "--times", "1"];
    let run = replay(&from_stdin, &put.to_string()).await;
    run.ends(0, ONCE);
    let heading = format!("a capture, once, to {looking}");
    assert_eq!(run.out.lines().next(), Some(heading.as_str()));
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
            "accept",
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
async fn a_capture_is_neither_signed_nor_changed() {
    let (_directory, file) = file(&captured(&github_delivery()).to_string());
    for signing in [
        &["--provider", "github"][..],
        &["--secret", SECRET],
        &["--id", "a"],
        &["--event-type", "push"],
        &["--fresh-ids"],
        &["--tampered"],
        &["--expired"],
        &["--unsigned"],
    ] {
        let arguments = [&["--capture", &file, "--url", NOBODY][..], signing].concat();
        replay(&arguments, "").await.is_error(&format!(
            "a capture is sent as it is, without signing: {} cannot go with --capture",
            signing[0]
        ));
    }
    for (capture, fault) in [
        ("{}", "it has to have either body or body_base64"),
        (
            r#"{"body":"","body_base64":""}"#,
            "it has to have either body or body_base64",
        ),
        (r#"{"body":"","method":"A B"}"#, "\"A B\" is not a method"),
        (
            r#"{"body":"","headers":{"a b":""}}"#,
            "\"a b\" is no header",
        ),
        (
            r#"{"body":"","headers":{"a":"b\n"}}"#,
            "the value of the header \"a\" cannot be one",
        ),
        (
            r#"{"body":"","headers":{"a":1}}"#,
            "not a capture: a header is a text or a list of texts at line 1 column 28",
        ),
        (
            "[",
            "not a capture: EOF while parsing a list at line 1 column 1",
        ),
    ] {
        let run = replay(&["--capture", "-", "--url", NOBODY], capture).await;
        run.is_error(&format!("standard input: {fault}"));
    }
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
        let app = TestApp::of(preset(keys), write_effect).await;
        let url = format!("http://{}/", app.serve().await);
        let provider = ["--provider", name, "--url", &url];
        let once = [&provider[..], &["--event-type", "a.type"]].concat();
        replay_as(Some(BASE64), &once, "{}").await.ends(0, ONCE);
        assert_rows!(app.database, claims: 1, effects: 1, "{name}");

        let fresh = [&provider[..], &["--fresh-ids"]].concat();
        replay_as(Some(BASE64), &fresh, "{}").await.ends(0, FRESH);
        assert_rows!(app.database, claims: 3, effects: 3, "{name}");

        let expired = [&provider[..], &["--expired"]].concat();
        let run = replay_as(Some(BASE64), &expired, "{}").await;
        match name {
            "github" | "shopify" => {
                run.is_error(&format!("{name} signs no time, so nothing of it expires"));
            }
            _ => run.ends(0, REFUSED),
        }
        assert_rows!(app.database, claims: 3, effects: 3, "{name}");
    }
}

/// An endpoint that answers 200 and hands on what it has been sent.
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
async fn a_body_that_says_its_id_is_sent_to_the_byte() {
    let (url, mut seeing) = look().await;
    let body = "{ \"type\" : \"a\", \"id\" : \"evt_1\" }\n";
    let stripe = ["--provider", "stripe", "--url", &url];
    for id in [&[][..], &["--id", "evt_1"]] {
        replay(&[&stripe, id].concat(), body).await.ends(0, ONCE);
        for _ in 0..2 {
            let (_, seen) = seeing.recv().await.unwrap();
            assert_eq!(seen, body);
        }
    }
}

/// Serves a router without the layer.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_layer_the_status_alone_counts() {
    let router = Router::new()
        .route("/", post(StatusCode::ACCEPTED))
        .route("/moved", post(async || Redirect::temporary("/")));
    let url = serve(router).await;
    let github = ["--provider", "github", "--url"];
    let note = "\nNo answer has x-webhook-outcome: the endpoint is not behind \
                idempotent-webhook, and is judged by the status alone.\n";

    let run = replay(&[&github[..], &[&url]].concat(), "{}").await;
    run.ends(0, ONCE);
    assert_eq!(run.answers("202", "-"), 2);
    assert!(run.out.contains(note), "{}", run.out);

    // Outcomes that the layer would not give to one delivery.
    for outcome in ["processed", "handshake"] {
        let says = async move || [("x-webhook-outcome", outcome)];
        let url = serve(Router::new().route("/", post(says))).await;
        let run = replay(&[&github[..], &[&url]].concat(), "{}").await;
        run.ends(1, NOT_ONCE);
        assert_eq!(run.answers("200", outcome), 2);
        assert!(!run.out.contains(note), "{}", run.out);
    }

    // A redirect is an answer, and goes nowhere.
    let moved = format!("{url}moved");
    let run = replay(&[&github[..], &[&moved]].concat(), "{}").await;
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
    let github = ["--provider", "github", "--timeout", "1", "--url", &url];
    let run = replay(&github, "{}").await;
    run.ends(1, NOT_ONCE);
    assert!(
        run.out
            .contains("     2       -  no answer: the time was up\n"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("\nby status:  200: 1, no answer: 1\n"),
        "{}",
        run.out
    );

    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let run = replay(&github, "{}").await;
    run.is_error(&format!("no answer from {host}: the time was up"));
}

/// Nobody listens there.
const NOBODY: &str = "http://user:password@127.0.0.1:1/";

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_one_line() {
    let stripe = ["--provider", "stripe", "--url", NOBODY];
    // Where nobody listens, not many are sent. The number of the error is that of the system.
    let unheard = replay(&[&stripe[..], &["--times", "4000000000"]].concat(), "{}").await;
    let refused = "error: no answer from 127.0.0.1:1: Connection refused (os error ";
    assert_eq!((unheard.code, unheard.out.as_str()), (2, ""));
    assert!(unheard.err.starts_with(refused), "{}", unheard.err);
    assert_eq!(unheard.err.lines().count(), 1);
    replay_as(None, &stripe, "{}")
        .await
        .is_error("the secret is missing: give it with --secret or in WEBHOOK_SECRET");
    replay_as(Some(" "), &stripe, "{}")
        .await
        .is_error("the webhook secret cannot be used: it is blank");
    replay(&["--provider", "svix", "--url", NOBODY], "{}")
        .await
        .is_error(
            "the webhook secret cannot be used: Standard Webhooks needs `whsec_` or nothing before \
             base64, or, with the feature `ed25519`, `whpk_` or `whsk_` before a key in base64",
        );
    replay(&stripe, "[]")
        .await
        .is_error("stripe says the id in the body, and this body is not a json object");
    replay(&["--provider", "linear", "--url", NOBODY], "")
        .await
        .is_error(
            "no delivery of linear: the request cannot be signed: the body is not JSON, but its time \
             is signed",
        );
    replay(&[&stripe[..], &["--id", "a\nb"]].concat(), "{}")
        .await
        .is_error("the id cannot be sent: it would not fit in a header");
    replay(&[&stripe[..], &["nowhere.json"]].concat(), "")
        .await
        .is_error("cannot read nowhere.json: No such file or directory (os error 2)");

    // Of clap's errors, too, what is wrong is in one line.
    for (wrong, told) in [
        (&["--times", "0"][..], "invalid value '0' for '--times <N>'"),
        (&["--tampered", "--unsigned"], "cannot be used with"),
        (&["--fresh-ids", "--id", "a"], "cannot be used with"),
        (&["--faster"], "unexpected argument '--faster' found"),
    ] {
        let run = replay(&[&stripe[..], wrong].concat(), "{}").await;
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(
            run.err.starts_with("error: ") && run.err.contains(told),
            "{}",
            run.err
        );
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
    let run = replay(&[], "").await;
    assert_eq!(
        run.err,
        "error: the following required arguments were not provided: --url <URL> \
         --provider <PROVIDER>; --help says more\n"
    );
    let run = replay(
        &["--provider", "stripe", "--url", "https://example.com"],
        "",
    )
    .await;
    assert!(run.err.contains("without TLS: http only"), "{}", run.err);

    let help = replay(&["--help"], "").await;
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    assert!(help.out.contains("\nExamples, "), "{}", help.out);
}
