//! Captures, recorded from requests or exported from the archive: each goes through a file, the
//! test kit, the preset and the handler.

use std::path::Path;
use std::time::{Duration, SystemTime};

use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::testing::{Pseudonyms, TestDelivery, assert_idempotent};
use idempotent_webhook::{Keep, Provider, Secret, presets};

use crate::support::{TestApp, assert_rows, endpoint, github_delivery, write_effect};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const KEY: &str = "a key of the tests";

const PERSON: &str = r#"{
    "name": "Ada Lovelace", "email": "ada@lovelace.org", "phone": "+49 151 23456789", "note": "Ask Lovelace",
    "address": {"line1": "12 Saint James Square", "city": "London", "postal_code": "SW1Y 4JH", "country": "GB"},
    "card": {"number": "4242424242424242", "last4": "4242", "brand": "visa"}, "token": "tok-s3cr3t", "status": "active"
}"#;

/// No capture contains any of these texts.
const HIDDEN: [&str; 12] = [
    "Ada", "ada@", "ovelace", "23456789", "James", "ondon", "SW1Y", "4242", "s3cr3t", "sha256=",
    "v1=", "t=17",
];

/// A provider's preset, the body of a delivery, and the header that gives the event type, if there
/// is one.
struct Sample {
    preset: &'static str,
    body: String,
    is_form: bool,
    header: Option<(&'static str, &'static str)>,
    /// What the handler reads from the body.
    kept: &'static str,
}

fn samples() -> Vec<Sample> {
    let json = |preset, body: &str, header, kept| Sample {
        preset,
        body: body.replace("PERSON", PERSON),
        is_form: false,
        header,
        kept,
    };
    let form = |preset, fields: &[(&str, &str)], kept| {
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (name, value) in fields {
            body.append_pair(name, &value.replace("PERSON", PERSON));
        }
        Sample {
            preset,
            body: body.finish(),
            is_form: true,
            header: None,
            kept,
        }
    };
    vec![
        json(
            "stripe",
            r#"{"id":"evt_1NG8Du2eZvKYlo2C","type":"invoice.paid","data":{"object":PERSON}}"#,
            None,
            "invoice.paid",
        ),
        json(
            "github",
            r#"{"action":"opened","sender":PERSON}"#,
            Some(("x-github-event", "issues")),
            "issues",
        ),
        json(
            "shopify",
            r#"{"id":820982911946154508,"total_price":"254.98","customer":PERSON}"#,
            Some(("x-shopify-topic", "orders/create")),
            "254.98",
        ),
        json(
            "slack",
            r#"{"type":"event_callback","event_id":"Ev0PV52K25","event":{"type":"message","user":PERSON}}"#,
            None,
            "event_callback",
        ),
        json(
            "standard-webhooks",
            r#"{"type":"user.created","timestamp":"2026-01-02T03:04:05Z","data":PERSON}"#,
            None,
            "user.created",
        ),
        json(
            "linear",
            r#"{"action":"create","type":"Issue","data":PERSON}"#,
            None,
            "Issue",
        ),
        json(
            "gitlab",
            r#"{"object_kind":"push","user":PERSON}"#,
            Some(("x-gitlab-event", "Push Hook")),
            "push",
        ),
        json(
            "mailgun",
            r#"{"event-data":{"event":"delivered","id":"CPgfbmQMTCKtHW6uIWtuVe","recipient":PERSON}}"#,
            None,
            "delivered",
        ),
        json(
            "paddle",
            r#"{"event_id":"evt_01hv8wptq8987qeep44cyrewp9","event_type":"transaction.paid","data":PERSON}"#,
            None,
            "transaction.paid",
        ),
        json(
            "discord",
            r#"{"id":"1234567890123456789","type":2,"application_id":"1234567890123456790","member":PERSON}"#,
            None,
            "\"type\": 2",
        ),
        form(
            "twilio",
            &[
                ("MessageSid", "SMe8d7f2a61f0c4b1d9f3e2a5b7c8d9e0f"),
                ("MessageStatus", "delivered"),
                ("From", "+4915123456789"),
                ("Body", "Ask Ada Lovelace"),
            ],
            "MessageStatus=delivered",
        ),
        form(
            "mandrill",
            &[(
                "mandrill_events",
                r#"[{"event":"send","_id":"exampleaaaaaaaaaaaaaaaaaaaaaaaaa","msg":PERSON}]"#,
            )],
            "%22event%22%3A%22send%22",
        ),
    ]
}

impl Sample {
    fn provider(&self) -> Provider {
        presets::by_name(self.preset)
            .unwrap()
            .provider(Secret::new(self.secret()).unwrap())
            .public_url("https://example.com".parse().unwrap())
    }

    /// The secret of a test vector that the preset accepts.
    fn secret(&self) -> String {
        let name = self.preset.replace('-', "_");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{name}.json"));
        let cases: serde_json::Value =
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let is_wanted = |case: &&serde_json::Value| {
            let signs = self.preset != "discord"
                || case["name"] == "private-key"
                || case["name"] == "key-pair";
            case["expect"] == "accept" && signs
        };
        let case = cases.as_array().unwrap().iter().find(is_wanted).unwrap();
        case["secret"].as_str().unwrap().to_owned()
    }

    /// Builds the delivery as the provider sends it, to the path `/`.
    fn delivery(&self, provider: &Provider) -> TestDelivery {
        let mut delivery = TestDelivery::new(provider)
            .body(&self.body)
            .at(SystemTime::now());
        if self.is_form {
            delivery = delivery.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        if let Some((name, value)) = self.header {
            delivery = delivery.header(HeaderName::from_static(name), value);
        }
        delivery
    }

    fn check(&self, file: &Path) {
        let written = std::fs::read_to_string(file).unwrap();
        let secret = self.secret();
        let hidden = HIDDEN.iter().copied().chain([&*secret]);
        for hidden in hidden {
            let is_there = written.contains(hidden);
            assert!(!is_there, "{}: {hidden} in {written}", self.preset);
        }
        assert!(written.contains(self.kept), "{}: {written}", self.preset);
        for header in ["signature", "authorization", "token:", "hmac"] {
            let head = written.split("\n\n").next().unwrap();
            assert!(!head.contains(header), "{}: {head}", self.preset);
        }
    }

    /// Signs the capture again and sends it to an application with a database of its own, which
    /// processes it once.
    async fn is_booked_once(&self, file: &Path) {
        let provider = self.provider();
        let app = TestApp::of(provider.clone(), write_effect).await;
        let delivery = TestDelivery::from_capture(&provider, file).uri("/");
        let effects = async || app.database.count("select count(*) from effects").await;
        assert_idempotent(&app.router, &delivery, effects).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z3_captures_of_twelve_providers_are_processed_and_say_nothing_of_anybody() {
    for sample in samples() {
        let provider = sample.provider();
        let folder = tempfile::tempdir().unwrap();
        let sent = sample.delivery(&provider);

        let capture = Pseudonyms::with_key(KEY).capture(&provider, &sent.request());
        let recorded = capture.unwrap().write_to(folder.path()).unwrap();
        sample.check(&recorded);
        sample.is_booked_once(&recorded).await;

        let app = TestApp::recovered(
            provider.clone(),
            |layer, recovery| layer.keep(Keep::all(recovery).processed_for(DAY)),
            write_effect,
        )
        .await;
        assert_eq!(
            app.send(sent.request()).await.outcome,
            "processed",
            "{}",
            sample.preset
        );
        let archive = Filter::new().state(KeptState::Processed);
        let pseudonyms = Pseudonyms::with_key(KEY);
        let captures = endpoint(&app).captures(&archive, 10, &pseudonyms).await;
        let capture = captures.unwrap().remove(0).unwrap();
        let exported = capture.write_to(folder.path()).unwrap();
        sample.check(&exported);
        sample.is_booked_once(&exported).await;
        // Recording and exporting give the same pseudonyms.
        let body = |file: &Path| {
            let written = std::fs::read_to_string(file).unwrap();
            written.split_once("\n\n").unwrap().1.to_owned()
        };
        assert_eq!(body(&recorded), body(&exported), "{}", sample.preset);
        // Recording and exporting have changed no rows.
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z3_an_export_has_the_newest_of_the_filter_and_tells_what_it_cannot_read() {
    let app = TestApp::keeping_all(|keep| keep.processed_for(DAY), write_effect).await;
    for id in ["d-1", "d-2", "d-3"] {
        let push = github_delivery().event_type(if id == "d-1" { "ping" } else { "push" });
        let answer = app
            .send(push.id(id).body(format!(r#"{{"n":"{id}"}}"#)).request())
            .await;
        assert_eq!(answer.outcome, "processed");
    }
    let compressed = github_delivery().id("d-4").event_type("push").body("{}");
    let gzip = HeaderName::from_static("content-encoding");
    let answer = app.send(compressed.header(gzip, "gzip").request()).await;
    assert_eq!(answer.outcome, "processed");
    let before = app.database.rows().await;

    let archive = Filter::new().state(KeptState::Processed);
    let pushes = archive.clone().event_type("push");
    let pseudonyms = Pseudonyms::with_key(KEY).keep("n");
    let export = async |filter: &Filter, limit| -> Vec<String> {
        let captures = endpoint(&app)
            .captures(filter, limit, &pseudonyms)
            .await
            .unwrap();
        let texts = captures.into_iter().map(|capture| match capture {
            Ok(capture) => capture.to_string().split('"').nth(3).unwrap().to_owned(),
            Err(error) => error.to_string(),
        });
        texts.collect()
    };
    let compressed = "its body is compressed";
    assert_eq!(export(&pushes, 10).await, [compressed, "d-3", "d-2"]);
    assert_eq!(export(&pushes, 2).await, [compressed, "d-3"]);
    assert_eq!(
        export(&archive, 10).await,
        [compressed, "d-3", "d-2", "d-1"]
    );
    // A delivery that is not processed cannot be exported.
    assert_eq!(export(&Filter::new(), 10).await, [""; 0]);
    assert_eq!(app.database.rows().await, before);
}

/// If an export computed its pseudonyms on a worker thread, it would hold up the requests on that
/// thread.
#[test]
fn z3_pseudonyms_are_made_on_a_thread_that_serves_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let app = TestApp::keeping_all(|keep| keep.processed_for(DAY), write_effect).await;
        let push = github_delivery().id("d-1").body(r#"{"n":"d-1"}"#);
        assert_eq!(app.send(push.request()).await.outcome, "processed");
        let archive = Filter::new().state(KeptState::Processed);
        let (endpoint, pseudonyms) = (endpoint(&app), Pseudonyms::new());

        let (release, held) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        let export = endpoint.captures(&archive, 10, &pseudonyms);
        tokio::pin!(export);
        let pause = Duration::from_secs(1);
        assert!(tokio::time::timeout(pause, &mut export).await.is_err());
        drop(release);
        assert!(busy.await.unwrap().is_err());
        assert_eq!(export.await.unwrap().len(), 1);
    });
}
