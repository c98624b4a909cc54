//! The curl command on the page of a delivery. A shell runs it, and it must send the same request.

use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use browser::{Browser, Look, Server};
use sqlx::Executor;

use crate::stage::{PREFIX, Stage, ada, assert_sound, github_delivery};

/// Settings that the layer would report.
const SETTINGS: &str = r#"
    insert into idempotent_webhook.endpoint_settings (endpoint, settings, told_at)
    values ('uploads', '{"signature_header": "x-hub-signature-256"}', now())
"#;

const WITH_A_QUERY: &str = "
    update idempotent_webhook.kept_requests
    set uri = '/in?a[]=1&b={x,y}&c=$HOME&d=''e''&f=%20'
";

type Received = (Method, Uri, HeaderMap, Bytes);

/// A server that writes down what it receives.
async fn receiver() -> (Server, Arc<Mutex<Vec<Received>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let router = Router::new().fallback({
        let received = Arc::clone(&received);
        async move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            received.lock().unwrap().push((method, uri, headers, body));
            StatusCode::OK
        }
    });
    (Server::start(router).await, received)
}

#[tokio::test]
async fn the_command_sends_the_same_request() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    let server = stage.serve(ada()).await;
    let bodies: [&[u8]; 9] = [
        br#"{"dead":"it's `id` $(id) ${HOME} \\ \" \n !!"}"#,
        b"lines\n\n\tand tabs\n",
        "漢字 🦀 \u{201c}quoted\u{201d} é".as_bytes(),
        b"@payload.bin",
        b"'; echo hacked; '",
        b"a=1&b=%20+&c",
        b"carriage\r\nreturns\r\n",
        "zero\u{200b}width \u{202e}and\u{feff}".as_bytes(),
        b"\0\xff and other bytes",
    ];
    for (number, body) in bodies.iter().enumerate() {
        stage
            .dead_with_body("uploads", &format!("a-{number}"), body.to_vec())
            .await;
    }
    stage.pool.execute(SETTINGS).await.unwrap();
    stage.pool.execute(WITH_A_QUERY).await.unwrap();
    let mut page = browser.page(Look::default()).await;
    for (number, body) in bodies.iter().enumerate() {
        let id = format!("a-{number}");
        let url = server.url(&format!("{PREFIX}/delivery?endpoint=uploads&id={id}"));
        assert_eq!(page.goto(&url).await, 200);
        assert_sound(&page).await;
        let command: String = page
            .eval("document.querySelector('pre.command').textContent")
            .await;
        let (receiver, received) = receiver().await;
        let signed = github_delivery(&id, body).request::<Body>();
        let signature = signed.headers()["x-hub-signature-256"].to_str().unwrap();
        assert!(
            command.contains("x-hub-signature-256: SIGNATURE"),
            "{command}"
        );
        let command = command
            .replace("https://HOST", &receiver.url(""))
            .replace("SIGNATURE", signature);
        // Downloads the body that the page offers next to the command.
        let folder = tempfile::tempdir().unwrap();
        let payload: String = page
            .eval("document.querySelector('a[download]').href")
            .await;
        let payload = reqwest::get(&payload).await.unwrap().bytes().await.unwrap();
        std::fs::write(folder.path().join("payload.bin"), payload).unwrap();

        let folder_of_shell = folder.path().to_owned();
        let run = tokio::task::spawn_blocking(move || {
            Command::new("bash")
                .args(["-c", &command])
                .current_dir(folder_of_shell)
                .env("NO_PROXY", "*")
                .output()
        });
        let output = run.await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        let received = std::mem::take(&mut *received.lock().unwrap());
        let [(method, uri, headers, sent)] = &received[..] else {
            panic!("{received:?}");
        };
        assert_eq!(method, "POST");
        assert_eq!(uri, "/in?a[]=1&b={x,y}&c=$HOME&d='e'&f=%20");
        assert_eq!(headers["x-hub-signature-256"], signature);
        for name in ["content-type", "x-github-delivery", "x-github-event"] {
            assert_eq!(headers.get(name), signed.headers().get(name), "{name}");
        }
        assert!(sent == body, "{id}: {sent:?}");
    }
    page.assert_clean().await;
}
