//! What it costs to find the signature in a forged request, if the provider's signature or the name of its key is
//! inside JSON or a form: `cargo bench --bench memory -- --forged`.
//!
//! The JSON has the form that takes the most memory when it is parsed: a list of small objects.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::request::Parts;
use http::{Method, Request};
use idempotent_webhook::presets::{
    AppStoreApp, BraintreeKeys, EbayEndpoint, PubSub, PublicKey, SnsTopic,
};
use idempotent_webhook::{Provider, Secret, presets};

use super::ROUNDS;
use super::heap::{Heap, Measurement, median};

/// The body limit of these presets.
const BODY: usize = 2 * 1024 * 1024;

/// The length of the header, in bytes. This is longer than servers usually accept.
const HEADER: usize = 380_000;

/// How many bytes may be allocated in addition to twice the size of the request. They are for the members of a token's
/// header, whose text has at most 16 KiB.
const BESIDE: u64 = 256 * 1024;

/// A list of about this many bytes.
fn list(bytes: usize) -> String {
    let elements = vec![r#"{"":0}"#; bytes / 7];
    format!("[{}]", elements.join(","))
}

/// The members of an object, with about this many bytes.
fn members(bytes: usize) -> String {
    let members = (0..bytes / 10).map(|i| format!(r#""m{i:04}":0"#));
    members.collect::<Vec<_>>().join(",")
}

fn token(header: &str, payload: &str) -> String {
    let encode = |text: &str| BASE64URL.encode(text);
    format!("{}.{}.AAAA", encode(header), encode(payload))
}

/// A JSON string of about this many bytes. A reader has to copy it, because of its escapes.
fn escaped(bytes: usize) -> String {
    format!(r"{}\n", "x".repeat(98)).repeat(bytes / 100)
}

/// An SNS message with these members instead of short ones.
fn sns(message: &str, subject: &str) -> String {
    let arn = "arn:aws:sns:us-east-1:123456789012:orders";
    let certificate = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem";
    format!(
        r#"{{"Type":"Notification","MessageId":"1","TopicArn":"{arn}","Subject":"{subject}","Message":"{message}",
        "Timestamp":"2026-01-01T00:00:00.000Z","SignatureVersion":"2","Signature":"AAAA","SigningCertURL":"{certificate}"}}"#
    )
}

/// A part of a multipart body.
fn part(name: &str, content: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n--b--\r\n")
}

struct Forged {
    name: &'static str,
    provider: Provider,
    header: (&'static str, String),
    body: String,
}

fn forged() -> Vec<Forged> {
    let secret = |text: &str| Secret::new(text).unwrap();
    let public_key = include_str!("../../tests/keys/rsa.pem");
    let encoded = BODY * 3 / 4 - 1000;
    let in_header = |bytes: usize| {
        let further = members(bytes * 3 / 4);
        let header = format!(r#"{{"alg":"RS256","kid":"1",{further}}}"#);
        ("authorization", format!("Bearer {}", token(&header, "{}")))
    };
    let pubsub = || {
        let account = "push@p.iam.gserviceaccount.com";
        presets::google_pubsub(PubSub::new(account, "https://example.com/").unwrap())
    };
    let none = || ("x-none", String::new());
    let topic = || SnsTopic::new("arn:aws:sns:us-east-1:123456789012:orders").unwrap();
    let url = || "https://example.com".parse().unwrap();
    let pairs = ["public|0"; 1000].join("%26");
    let certificates = r#"["AA==","AA==","AA=="]"#;
    vec![
        Forged {
            name: "microsoft_graph",
            provider: presets::microsoft_graph(secret("a state")),
            header: none(),
            body: format!(
                r#"{{"x":{},"value":[{{"clientState":"b state"}}]}}"#,
                list(BODY - 100)
            ),
        },
        Forged {
            name: "microsoft_graph",
            provider: presets::microsoft_graph(secret("a state")),
            header: none(),
            body: format!(
                r#"{{"value":[{{"clientState":"{}"}}]}}"#,
                escaped(BODY - 100)
            ),
        },
        Forged {
            name: "aws_sns",
            provider: presets::aws_sns(topic()),
            header: none(),
            body: sns(&"x".repeat(BODY - 1000), ""),
        },
        Forged {
            name: "aws_sns",
            provider: presets::aws_sns(topic()),
            header: none(),
            body: sns(&escaped(BODY - 1000), ""),
        },
        Forged {
            name: "aws_sns",
            provider: presets::aws_sns(topic()),
            header: none(),
            body: sns("", &escaped(BODY - 1000)),
        },
        Forged {
            name: "dropbox_sign",
            provider: presets::dropbox_sign(secret("a secret")),
            header: ("content-type", "multipart/form-data; boundary=b".to_owned()),
            body: part(
                "json",
                &format!(
                    r#"{{"event":{{"event_time":"1","event_type":"{}","event_hash":"0"}}}}"#,
                    escaped(BODY - 1000)
                ),
            ),
        },
        Forged {
            name: "dropbox_sign",
            provider: presets::dropbox_sign(secret("a secret")),
            header: ("content-type", "multipart/form-data; boundary=b".to_owned()),
            body: "--b".repeat(BODY / 3),
        },
        Forged {
            name: "braintree",
            provider: presets::braintree(BraintreeKeys::new("public", secret("private")).unwrap()),
            header: none(),
            body: format!(
                "bt_signature={pairs}&bt_payload={}",
                "x".repeat(BODY - 20_000)
            ),
        },
        Forged {
            name: "twilio",
            provider: presets::twilio(secret("a token")).public_url(url()),
            header: ("x-twilio-signature", "AAAA".to_owned()),
            body: format!("{}x={}", "x=&".repeat(900), "x".repeat(BODY - 10_000)),
        },
        Forged {
            name: "mandrill",
            provider: presets::mandrill(secret("a key")).public_url(url()),
            header: ("x-mandrill-signature", "AAAA".to_owned()),
            body: format!("mandrill_events={}", "x".repeat(BODY - 100)),
        },
        Forged {
            name: "monday",
            provider: presets::monday(secret("a secret"))
                .public_url("https://example.com".parse().unwrap()),
            header: none(),
            body: format!(r#"{{"challenge":{}}}"#, list(BODY - 100)),
        },
        Forged {
            name: "apple_app_store",
            provider: presets::apple_app_store(AppStoreApp::new("com.example.app").unwrap()),
            header: none(),
            body: format!(
                r#"{{"signedPayload":"{}"}}"#,
                token(
                    &format!(r#"{{"alg":"ES256","x5c":{certificates}}}"#),
                    &format!(r#"{{"x":{},"signedDate":1}}"#, list(encoded)),
                )
            ),
        },
        Forged {
            name: "wix",
            provider: presets::wix(PublicKey::new(public_key).unwrap()),
            header: none(),
            body: token(&format!(r#"{{"alg":"RS256","x":{}}}"#, list(encoded)), "{}"),
        },
        Forged {
            name: "google_pubsub",
            provider: pubsub(),
            header: in_header(HEADER),
            body: "{}".to_owned(),
        },
        Forged {
            name: "google_pubsub",
            provider: pubsub(),
            header: in_header(16 * 1024 - 200),
            body: "{}".to_owned(),
        },
        Forged {
            name: "ebay",
            provider: presets::ebay(EbayEndpoint::new(secret(&"a-token-".repeat(5))).unwrap()),
            header: ("x-ebay-signature", BASE64.encode(list(HEADER * 3 / 4))),
            body: "{}".to_owned(),
        },
    ]
}

impl Forged {
    fn head(&self) -> Parts {
        let (name, value) = &self.header;
        let request = Request::builder().method(Method::POST).uri("/");
        let request = request.header(*name, value);
        request.body(()).unwrap().into_parts().0
    }
}

/// How long the work takes on average.
fn time(mut work: impl FnMut()) -> Duration {
    const TIMES: u32 = 20;
    let begin = Instant::now();
    (0..TIMES).for_each(|_| work());
    begin.elapsed() / TIMES
}

pub fn forgeries_are_cheap() {
    println!("\nforged requests whose signature is in JSON or a form: Provider::verify\n");
    println!(
        "{:<18} {:>10} {:>12} {:>10} {:>14}",
        "preset", "sent", "allocations", "peak", "time/HMAC"
    );
    for forged in forged() {
        let (head, body) = (forged.head(), forged.body.as_bytes());
        let sent = body.len() + forged.header.1.len();
        let verify = || forged.provider.verify(&head, body, SystemTime::now());
        let heaps: Vec<Heap> = (0..ROUNDS)
            .map(|_| {
                let measurement = Measurement::begin();
                let verified = verify();
                let heap = measurement.so_far();
                assert!(verified.is_err());
                heap
            })
            .collect();
        let heap = median(&heaps);
        let github = presets::github(Secret::new("a secret").unwrap());
        let content = vec![0; sent];
        let (hmac_head, ()) = Request::post("/")
            .header("x-hub-signature-256", format!("sha256={}", "0".repeat(64)))
            .body(())
            .unwrap()
            .into_parts();
        let hmac = time(|| {
            let verified = github.verify(&hmac_head, &content, SystemTime::now());
            assert!(black_box(verified).is_err());
        });
        let taken = time(|| assert!(black_box(verify()).is_err()));
        println!(
            "{:<18} {sent:>10} {:>12} {:>10} {:>14.1}",
            forged.name,
            heap.allocations,
            heap.peak,
            taken.as_secs_f64() / hmac.as_secs_f64()
        );
        assert!(
            heap.peak <= 2 * sent as u64 + BESIDE,
            "{} takes {} bytes for {sent}",
            forged.name,
            heap.peak
        );
    }
}
