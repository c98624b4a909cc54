//! `record`, as a process that requests are sent to, and what its files are good for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::SystemTime;

use axum::http::{HeaderName, Request};
use bytes::Bytes;
use idempotent_webhook::Provider;
use idempotent_webhook::testing::TestDelivery;
use tempfile::TempDir;

use crate::capture::preset;
use crate::run::{run, shows_nothing_of, webhook};

const SECRET: &str = "a-secret-of-the-webhook";

const PAID: &str = r#"{"id":"evt_1NG8Du2eZvKYlo2C","type":"invoice.paid","created":1750000000,
    "data":{"object":{"customer_name":"Ada Lovelace","customer_email":"ada@lovelace.org","total":4200}}}"#;

/// A run of `webhook record`, which is ended with it.
struct Recorder {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
    folder: TempDir,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Recorder {
    fn start(provider: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_webhook"))
            .args(["record", provider])
            // It is made.
            .arg(folder.path().join("captures"))
            .args(more)
            .env("WEBHOOK_SECRET", SECRET)
            .env("PSEUDONYMS", "a key of the tests")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut recorder = Self {
            out: BufReader::new(child.stdout.take().unwrap()),
            child,
            address: String::new(),
            folder,
        };
        let line = recorder.line();
        recorder.address = line
            .strip_prefix("listening at http://")
            .unwrap()
            .to_owned();
        recorder
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The status that is answered.
    fn send(&self, request: &Request<Bytes>) -> u16 {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
            request.method(),
            request.uri(),
            self.address,
            request.body().len()
        );
        for (name, value) in request.headers() {
            head += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        self.send_bytes(&[head.as_bytes(), b"\r\n", request.body()].concat())
    }

    fn send_bytes(&self, bytes: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // It may have answered before it has read all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1);
        status
            .unwrap_or_else(|| panic!("{answer}"))
            .parse()
            .unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.folder.path().join("captures")).unwrap();
        let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The exit status, and what it has said since the last line.
    fn end(mut self) -> (i32, String, String, TempDir) {
        let code = self.child.wait().unwrap().code().unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        let stderr = self.child.stderr.take();
        stderr.unwrap().read_to_string(&mut err).unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (code, out, err, folder)
    }
}

fn delivery(provider: &Provider) -> TestDelivery {
    TestDelivery::new(provider)
        .uri("/webhooks")
        .at(SystemTime::now())
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn z3_what_verifies_is_recorded_with_pseudonyms_and_without_its_signature() {
    let stripe = preset("stripe", SECRET);
    let mut recorder = Recorder::start("stripe", &["--count", "2"]);
    let paid = delivery(&stripe).body(PAID);
    assert_eq!(recorder.send(&paid.request()), 200);
    let line = recorder.line();
    assert!(line.ends_with("invoice.paid.http"), "{line}");
    assert_eq!(
        recorder.line(),
        "  replaced: $.data.object.customer_email $.data.object.customer_name $.id"
    );
    let files = recorder.files();
    let written = text(&files[0]);
    for hidden in [
        "Ada",
        "Lovelace",
        "lovelace",
        "1NG8Du2eZvKYlo2C",
        "signature",
        SECRET,
    ] {
        assert!(!written.contains(hidden), "{written}");
    }
    for kept in [
        "POST /webhooks HTTP/1.1",
        "invoice.paid",
        "4200",
        "1750000000",
        "evt_",
    ] {
        assert!(written.contains(kept), "{written}");
    }

    // The same delivery again has the same pseudonyms, and a file of its own.
    assert_eq!(recorder.send(&paid.request()), 200);
    let (code, out, err, folder) = recorder.end();
    assert_eq!((code, &*err), (0, ""), "{out}");
    let second = folder.path().join("captures/invoice.paid-2.http");
    assert_eq!(text(&second), written);
}

#[test]
fn z3_what_does_not_verify_is_not_recorded() {
    let github = preset("github", SECRET);
    let mut recorder = Recorder::start("github", &[]);
    let push = delivery(&github)
        .event_type("push")
        .body(r#"{"ref":"main"}"#);
    assert_eq!(recorder.send(&push.tampered().request()), 401);
    assert_eq!(recorder.line(), "not recorded: 401 rejected");
    assert_eq!(recorder.send(&push.unsigned().request()), 401);
    assert_eq!(recorder.line(), "not recorded: 401 rejected");
    assert!(recorder.files().is_empty());
    let mut get: Request<Bytes> = push.request();
    *get.method_mut() = "GET".parse().unwrap();
    assert_eq!(recorder.send(&get), 405);
    assert_eq!(recorder.line(), "not recorded: 405 rejected");
    // It goes on.
    assert_eq!(recorder.send(&push.request()), 200);
    assert!(recorder.line().ends_with("push.http"));
}

#[test]
fn z3_a_body_that_cannot_be_read_is_told_and_not_recorded() {
    let github = preset("github", SECRET);
    let mut recorder = Recorder::start("github", &[]);
    let of = |content_type: &str, body: &[u8]| {
        let name = HeaderName::from_static("content-type");
        delivery(&github).header(name, content_type).body(body)
    };
    assert_eq!(
        recorder.send(&of("application/json", b"{\"a\":\"\xff\"}").request()),
        415
    );
    assert_eq!(
        recorder.line(),
        "not recorded: its body is no text in UTF-8"
    );
    assert_eq!(recorder.send(&of("text/plain", b"Ada").request()), 415);
    assert_eq!(
        recorder.line(),
        "not recorded: its body is neither JSON nor a form"
    );
    let compressed =
        of("application/json", b"{}").header(HeaderName::from_static("content-encoding"), "gzip");
    assert_eq!(recorder.send(&compressed.request()), 415);
    assert_eq!(recorder.line(), "not recorded: its body is compressed");

    // JSON is JSON, whatever its content type or without one.
    let mut bare: Request<Bytes> = of("text/plain", br#"{"action":"opened"}"#).request();
    bare.headers_mut().remove("content-type");
    assert_eq!(recorder.send(&bare), 200);
    assert!(recorder.line().ends_with("test.opened.http"));
    assert!(!text(&recorder.files()[0]).contains("content-type"));
    recorder.line();

    // More than GitHub sends.
    let limit = github.description().body_limit;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
        limit + 1
    );
    let large = [head.into_bytes(), vec![b' '; limit + 1]].concat();
    assert_eq!(recorder.send_bytes(&large), 413);
    assert_eq!(recorder.line(), "not recorded: 413 Payload Too Large");
    assert_eq!(recorder.files().len(), 1);
}

#[test]
fn z3_members_are_kept_and_replaced_by_name_and_a_key_is_for_several_runs() {
    let stripe = preset("stripe", SECRET);
    let paid = delivery(&stripe).body(PAID);
    let options = [
        "--count",
        "1",
        "--keep",
        "customer_name",
        "--replace",
        "total",
        "--key-env",
        "PSEUDONYMS",
    ];
    let written = [(); 2].map(|()| {
        let recorder = Recorder::start("stripe", &options);
        assert_eq!(recorder.send(&paid.request()), 200);
        let (code, _, _, folder) = recorder.end();
        assert_eq!(code, 0);
        text(&folder.path().join("captures/invoice.paid.http"))
    });
    assert_eq!(written[0], written[1]);
    assert!(written[0].contains("Ada Lovelace"), "{}", written[0]);
    assert!(!written[0].contains("4200"), "{}", written[0]);
    assert!(!written[0].contains("ada@"), "{}", written[0]);
}

#[test]
fn z3_a_recorded_file_can_be_replayed_and_verified() {
    let github = preset("github", SECRET);
    let mut recorder = Recorder::start("github", &[]);
    let push = delivery(&github)
        .event_type("push")
        .body(r#"{"ref":"main"}"#);
    assert_eq!(recorder.send(&push.request()), 200);
    recorder.line();
    recorder.line();
    let file = recorder.files().remove(0);
    let to = format!("http://{}", recorder.address);
    let replay = ["replay", file.to_str().unwrap(), "--to", &to];
    let anew = [&replay[..], &["--provider", "github"]].concat();
    // The recorder is an endpoint as any other.
    webhook(SECRET, &anew, b"").ends(0);
    assert!(recorder.line().ends_with("push-2.http"));
    // As it is, it has no signature.
    run(None, &replay, b"").ends(1);
}

#[test]
fn z3_wrong_usage_of_record_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let of = |provider: &str, more: &[&str]| {
        let folder = folder.path().to_str().unwrap();
        webhook(
            SECRET,
            &[&["record", provider, folder][..], more].concat(),
            b"",
        )
    };
    of("strip", &[]).is_error("is it stripe?");
    of("stripe", &["--count", "0"]).is_error("'--count <N>'");
    of("stripe", &["--listen", "nowhere"]).is_error("'--listen <ADDRESS>'");
    of("stripe", &["--key-env", "NOT_SET"]).is_error("NOT_SET has no key of pseudonyms");
    of("twilio", &[]).is_error("twilio signs the URL: give --public-url");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    of("stripe", &["--listen", &taken]).is_error("cannot listen at");
    webhook(SECRET, &["record", "stripe", file.to_str().unwrap()], b"").is_error("cannot make");
    let run = run(None, &["record", "stripe", "a"], b"");
    run.is_error("the secret is missing");
    shows_nothing_of(SECRET, &run);
}
