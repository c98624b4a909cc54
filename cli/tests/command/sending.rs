//! `send` and `replay`, against a server that verifies requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{Delivery, VerifiedWebhook};

use crate::capture::{Captured, preset};
use crate::run::{Run, webhook};

const SECRET: &str = "a secret of the webhook";

/// How often each delivery has arrived.
type Seen = Arc<Mutex<BTreeMap<String, usize>>>;

async fn serve(provider: &str) -> (String, Seen) {
    let seen = Seen::default();
    let counted = seen.clone();
    let handler = async move |delivery: Delivery| {
        let mut seen = counted.lock().unwrap();
        *seen.entry(delivery.id().to_string()).or_insert(0) += 1;
    };
    let layer = VerifiedWebhook::new("test", preset(provider, SECRET));
    let app = Router::new().route("/hooks", post(handler).layer(layer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (format!("http://{address}"), seen)
}

async fn of(arguments: &[&str], stdin: &[u8]) -> Run {
    let arguments: Vec<_> = arguments.iter().map(|one| (*one).to_owned()).collect();
    let stdin = stdin.to_vec();
    let run = move || {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        webhook(SECRET, &arguments, &stdin)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn seen_counts(seen: &Seen) -> Vec<(String, usize)> {
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_copies_have_one_id_and_distinct_ones_have_their_own() {
    let (base, seen) = serve("github").await;
    let url = format!("{base}/hooks");
    let send = [
        "send",
        "github",
        "--to",
        &url,
        "--times",
        "50",
        "--concurrency",
        "10",
    ];

    let run = of(
        &[&send[..], &["--id", "d-1", "--event", "push"]].concat(),
        b"",
    )
    .await;
    let heading = format!("github delivery \"d-1\", 50 times, 10 at once, to {url}\n");
    run.ends(0)
        .says(&heading)
        .says("200     verified        50")
        .says("As expected: every answer 2xx, and at most one of them processed.");
    // The report is the only output.
    assert_eq!(run.err, "");
    assert_eq!(seen_counts(&seen), [("d-1".to_owned(), 50)]);

    of(&send, b"").await.ends(0);
    let once = seen_counts(&seen);
    assert_eq!((once.len(), once[0].1), (1, 50));

    let run = of(&[&send[..], &["--distinct"]].concat(), b"").await;
    run.ends(0)
        .says("As expected: every answer 2xx, and none of them duplicate.");
    let distinct = seen_counts(&seen);
    assert_eq!(distinct.len(), 50);
    assert!(distinct.iter().all(|(_, times)| *times == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_not_as_expected_unless_it_was_asked_for() {
    let (base, seen) = serve("github").await;
    let url = format!("{base}/hooks");
    let send = ["send", "github", "--to", &url];
    let run = of(&[&send[..], &["--secret", "another secret"]].concat(), b"").await;
    run.ends(1)
        .says("401     rejected         1")
        .says("\"webhook verify\" shows which")
        .says("Not as expected. Expected: every answer 2xx");
    for fault in ["--tampered", "--unsigned"] {
        let run = of(&[&send[..], &[fault]].concat(), b"").await;
        run.ends(0).says("As expected: every answer 401.");
    }
    let elsewhere = ["send", "github", "--to", &base];
    of(&elsewhere, b"")
        .await
        .ends(1)
        .says("404     -                1");
    assert_eq!(seen_counts(&seen), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_is_replayed_at_its_path_and_signed_anew_if_it_is_too_old() {
    let (base, seen) = serve("stripe").await;
    let body = r#"{ "id":"evt_1", "type":"invoice.paid" }"#;
    let captured = Captured::of("stripe", SECRET, body).with_header("connection", "x-hop");
    let captured = captured.with_header("x-hop", "1").text();

    let replay = ["replay", "-", "--to", &base, "--times", "3"];
    let run = of(&replay, &captured).await;
    run.ends(1)
        .says("401     rejected         3")
        .says("\n401 rejected says: ");
    assert_eq!(seen_counts(&seen), []);

    let anew = [&replay[..], &["--provider", "stripe"]].concat();
    let run = of(&anew, &captured).await;
    run.ends(0)
        .says(&format!(
            "a capture, signed again for stripe, 3 times, one after another, to {base}/hooks"
        ))
        .says("200     verified         3");
    assert_eq!(seen_counts(&seen), [("evt_1".to_owned(), 3)]);

    let (base, seen) = serve("github").await;
    let captured = Captured::of("github", SECRET, body).text();
    let replay = ["replay", "-", "--to", &base];
    of(&replay, &captured)
        .await
        .ends(0)
        .says("a capture, once, to ");
    assert_eq!(seen_counts(&seen), [("delivery-1".to_owned(), 1)]);
}
