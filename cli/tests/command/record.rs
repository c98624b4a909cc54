//! `record`, as a process that receives requests, and the use of its files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

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

/// A run of `webhook record`. Dropping it ends the process.
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
        Self::start_by(&[], provider, more)
    }

    /// Starts the command through another program that runs it.
    fn start_by(program: &[&str], provider: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let all = [program, &[env!("CARGO_BIN_EXE_webhook")]].concat();
        let mut child = Command::new(all[0])
            .args(&all[1..])
            .args(["record", provider])
            // The command must create this folder.
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

    /// Sends a request, and returns the status of the response.
    fn send(&self, request: &Request<Bytes>) -> u16 {
        self.send_bytes(&self.bytes(request))
    }

    /// The bytes of a request as it is sent.
    fn bytes(&self, request: &Request<Bytes>) -> Vec<u8> {
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
        [head.as_bytes(), b"\r\n", request.body()].concat()
    }

    fn send_bytes(&self, bytes: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // The command may answer before it has read the whole request.
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

    /// The exit status, and the output since the last line that was read.
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

    // The same delivery, sent again, has the same pseudonyms and gets its own file.
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
    let line = recorder.line();
    let no_match = "not recorded: 401 rejected: signature matches none of the secrets";
    assert!(line.starts_with(no_match), "{line}");
    assert_eq!(recorder.send(&push.unsigned().request()), 401);
    assert_eq!(
        recorder.line(),
        "not recorded: 401 rejected: header x-hub-signature-256 is missing"
    );
    let mut nameless: Request<Bytes> = push.request();
    nameless.headers_mut().remove("x-github-delivery");
    assert_eq!(recorder.send(&nameless), 400);
    let line = recorder.line();
    assert!(line.contains("400 rejected: "), "{line}");
    assert!(line.contains("x-github-delivery"), "{line}");
    assert!(recorder.files().is_empty());
    let mut get: Request<Bytes> = push.request();
    *get.method_mut() = "GET".parse().unwrap();
    assert_eq!(recorder.send(&get), 405);
    assert_eq!(recorder.line(), "not recorded: 405 rejected");
    // The recording continues.
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
    assert_eq!(recorder.line(), "not recorded: its body is not UTF-8");
    assert_eq!(recorder.send(&of("text/plain", b"Ada").request()), 415);
    assert_eq!(
        recorder.line(),
        "not recorded: its body is neither JSON nor a form"
    );
    let compressed =
        of("application/json", b"{}").header(HeaderName::from_static("content-encoding"), "gzip");
    assert_eq!(recorder.send(&compressed.request()), 415);
    assert_eq!(recorder.line(), "not recorded: its body is compressed");

    // JSON is recognized with any content type, or without one.
    let mut bare: Request<Bytes> = of("text/plain", br#"{"action":"opened"}"#).request();
    bare.headers_mut().remove("content-type");
    assert_eq!(recorder.send(&bare), 200);
    assert!(recorder.line().ends_with("test.opened.http"));
    assert!(!text(&recorder.files()[0]).contains("content-type"));
    recorder.line();

    // A larger body than GitHub sends.
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

/// The command serves requests on one thread, which a large body must not block.
#[test]
fn z3_a_large_delivery_holds_up_no_other_one() {
    let github = preset("github", SECRET);
    let mut recorder = Recorder::start("github", &[]);
    // Tens of thousands of words, each of which needs a pseudonym.
    let words: String = (0..30_000).map(|number| format!("{number:06} ")).collect();
    let push = delivery(&github).event_type("push");
    let large = push.body(format!(r#"{{"note":"{words}"}}"#));
    let large = recorder.bytes(&large.request());
    let mut stream = TcpStream::connect(&recorder.address).unwrap();
    stream.write_all(&large).unwrap();
    let ping = delivery(&github).event_type("ping").body("{}");
    for _ in 0..3 {
        assert_eq!(recorder.send(&ping.request()), 200);
        let line = recorder.line();
        assert!(line.contains("ping"), "{line}");
        recorder.line();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert!(recorder.line().ends_with("push.http"));
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
    // The recorder is an endpoint like any other.
    webhook(SECRET, &anew, b"").ends(0);
    assert!(recorder.line().ends_with("push-2.http"));
    recorder.line();
    // The file names the provider.
    webhook(SECRET, &replay, b"")
        .ends(0)
        .says("a capture, signed again for github, once, to ");
    assert!(recorder.line().ends_with("push-3.http"));
    run(None, &replay, b"").is_error("the secret is missing");
    let file = file.to_str().unwrap();
    webhook(SECRET, &["verify", "github", file], b"").is_error(
        "the file was recorded for github, with pseudonyms and without a signature, so there is no signature to verify",
    );

    let custom = text(Path::new(file)).replace("# recorded for github\n", "# recorded for acme\n");
    let replay = ["replay", "-", "--to", &to];
    webhook(SECRET, &replay, custom.as_bytes()).is_error(
        "the file was recorded for acme, which is not a preset: name one with --provider",
    );
}

#[test]
fn z3_a_401_to_a_capture_with_pseudonyms_is_explained() {
    let recorder = Recorder::start("github", &[]);
    let to = format!("http://{}", recorder.address);
    // The request as the archive stores it.
    let archived = b"POST / HTTP/1.1\nx-github-delivery: a\nx-github-event: push\n\n{}";
    let as_it_is = run(None, &["replay", "-", "--to", &to], archived);
    as_it_is
        .ends(1)
        .says("has no signature: --provider signs it again");
}

#[test]
fn z3_a_name_that_is_to_be_kept_and_is_not_there_is_told() {
    let stripe = preset("stripe", SECRET);
    let options = [
        "--count",
        "1",
        "--keep",
        "costumer_name",
        "--keep",
        "$.data.object.customer_email",
        "--replace",
        "amount",
        "--replace",
        "total",
    ];
    let mut recorder = Recorder::start("stripe", &options);
    let paid = delivery(&stripe).body(PAID);
    assert_eq!(recorder.send(&paid.request()), 200);
    recorder.line();
    assert_eq!(
        recorder.line(),
        "  replaced: $.data.object.customer_name $.data.object.total $.id"
    );
    assert_eq!(recorder.line(), "  not found: amount costumer_name");
}

#[test]
fn z3_any_event_type_becomes_a_name_that_is_safe_in_a_shell_and_on_windows() {
    let github = preset("github", SECRET);
    let mut recorder = Recorder::start("github", &[]);
    for (event_type, file) in [
        ("-rf", "_-rf.http"),
        ("con", "_con.http"),
        ("Aux.created", "_aux.created.http"),
        ("lpt1", "_lpt1.http"),
        ("console", "console.http"),
        ("../../a", "_.._a.http"),
    ] {
        let delivery = delivery(&github)
            .header(HeaderName::from_static("x-github-event"), event_type)
            .body("{}");
        assert_eq!(recorder.send(&delivery.request()), 200);
        let line = recorder.line();
        let is_named = Path::new(&line)
            .file_name()
            .is_some_and(|name| name == file);
        assert!(is_named, "{event_type}: {line}");
        recorder.line();
    }
}

#[test]
fn z3_a_file_that_cannot_be_written_whole_is_not_there() {
    let github = preset("github", SECRET);
    // The file size limit is one block of 512 bytes, as if the disk were full.
    let recorder = Recorder::start_by(
        &["sh", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"],
        "github",
        &["--keep", "a"],
    );
    let body = format!(r#"{{"a":"{}"}}"#, "a".repeat(4096));
    let large = delivery(&github).event_type("push").body(body);
    assert_eq!(recorder.send(&large.request()), 500);
    assert!(recorder.files().is_empty());
    let (code, out, err, _) = recorder.end();
    assert_eq!((code, &*out), (2, ""), "{err}");
    assert!(err.starts_with("error: cannot write to "), "{err}");
}

#[test]
fn z3_no_more_files_are_written_than_were_asked_for() {
    let github = preset("github", SECRET);
    let recorder = Recorder::start("github", &["--count", "2"]);
    let push = delivery(&github)
        .event_type("push")
        .body(r#"{"ref":"main"}"#);
    let bytes = recorder.bytes(&push.request());
    let (last, first) = bytes.split_last().unwrap();
    // Each request is sent except for its last byte, and then all last bytes are sent at the same
    // time.
    let mut streams: Vec<_> = (0..10)
        .map(|_| {
            let mut stream = TcpStream::connect(&recorder.address).unwrap();
            stream.write_all(first).unwrap();
            stream
        })
        .collect();
    for stream in &mut streams {
        stream.write_all(&[*last]).unwrap();
    }
    let answers = streams.iter_mut().map(|stream| {
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    let accepted = answers.filter(|answer| answer.starts_with("HTTP/1.1 200"));
    assert_eq!(accepted.count(), 2);
    assert_eq!(recorder.files().len(), 2);
    let (code, _, err, _) = recorder.end();
    assert_eq!((code, &*err), (0, ""));
}

#[test]
fn z3_a_request_waits_while_many_others_are_read() {
    let github = preset("github", SECRET);
    let recorder = Recorder::start("github", &["--count", "1"]);
    let push = delivery(&github)
        .event_type("push")
        .body(r#"{"ref":"main"}"#);
    let bytes = recorder.bytes(&push.request());
    let mut idle: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = TcpStream::connect(&recorder.address).unwrap();
            stream.write_all(b"POST").unwrap();
            stream
        })
        .collect();
    let mut waiting = TcpStream::connect(&recorder.address).unwrap();
    waiting.write_all(&bytes).unwrap();
    let brief = Duration::from_millis(300);
    waiting.set_read_timeout(Some(brief)).unwrap();
    let mut answer = [0; 12];
    assert!(waiting.read_exact(&mut answer).is_err());
    assert!(recorder.files().is_empty());

    // One of the clients closes its connection.
    drop(idle.pop());
    waiting.set_read_timeout(None).unwrap();
    waiting.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    assert_eq!(recorder.end().0, 0);
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
    of("stripe", &["--key-env", "NOT_SET"])
        .is_error("NOT_SET does not contain a key for pseudonyms");
    of("twilio", &[]).is_error("twilio signs the URL: give --public-url");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    of("stripe", &["--listen", &taken]).is_error("cannot listen at");
    webhook(SECRET, &["record", "stripe", file.to_str().unwrap()], b"").is_error("cannot make");
    let run = run(None, &["record", "stripe", "a"], b"");
    run.is_error("the secret is missing");
    shows_nothing_of(SECRET, &run);
}
