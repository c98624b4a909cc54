//! `webhook send --canary` reports how far a canary gets: through TLS, through proxies in front of the layer, and to
//! Postgres. A canary is a signed request that the layer claims and rolls back without calling the handler.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Redirect;
use axum::routing::post;
use idempotent_webhook::{Secret, VerifiedWebhook, presets};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::application::{Application, Rows, serve};
use crate::run::{Run, run_in, shows_nothing_of};

const SECRET: &str = "a secret of the webhook";

/// A certificate for the name `localhost`.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/localhost.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/localhost_key.pem");

fn stripe() -> idempotent_webhook::Provider {
    presets::stripe(Secret::new(SECRET).unwrap())
}

async fn canary_with(
    variables: &[(&'static str, &'static str)],
    provider: &str,
    to: &str,
    more: &[&str],
) -> Run {
    let all = [&["send", provider, "--to", to, "--canary"], more].concat();
    let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
    let variables = variables.to_vec();
    let run = move || {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        run_in(variables, &all, b"")
    };
    let run = tokio::task::spawn_blocking(run).await.unwrap();
    shows_nothing_of(SECRET, &run);
    run
}

async fn canary(provider: &str, to: &str) -> Run {
    canary_with(&[("WEBHOOK_SECRET", SECRET)], provider, to, &[]).await
}

/// Starts a proxy that terminates TLS in front of a server at this address, and returns the proxy's port.
async fn with_tls(url: &str) -> u16 {
    let server = url
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let certificates = vec![CertificateDer::from_pem_file(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_file(KEY).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, server) = (acceptor.clone(), server.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate closes the connection.
                let Ok(mut client) = acceptor.accept(stream).await else {
                    return;
                };
                let mut server = TcpStream::connect(server).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    port
}

const NOTHING: Rows = Rows {
    claims: 0,
    effects: 0,
};

#[tokio::test(flavor = "multi_thread")]
async fn deploy_3_a_canary_reaches_postgres_and_leaves_nothing() {
    let app = Application::serve(stripe()).await;
    for _ in 0..2 {
        let run = canary("stripe", &app.url).await;
        run.ends(0)
            .says(&format!("stripe canary to {}: 200 canary\n", app.url));
        run.says("It has reached the layer")
            .says("claimed in Postgres, and rolled back");
    }
    assert_eq!(app.rows().await, NOTHING);

    let other = [("WEBHOOK_SECRET", "another secret of a webhook")];
    let refused = canary_with(&other, "stripe", &app.url, &[]).await;
    refused
        .ends(1)
        .says("401 rejected")
        .says("has refused the signature");
    // The signature of another provider: the expected header is missing.
    canary("github", &app.url)
        .await
        .ends(1)
        .says("401 rejected");
    assert_eq!(app.rows().await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_3_a_canary_says_if_postgres_is_away() {
    let app = Application::serve(stripe()).await;
    app.close_pool().await;
    let away = canary("stripe", &app.url).await;
    away.is_not_now("503 canary");
    assert!(
        away.err
            .contains("has reached the layer, and the claim has failed"),
        "{}",
        away.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_3_a_canary_goes_over_tls_with_a_certificate_that_is_trusted() {
    let app = Application::serve(stripe()).await;
    let port = with_tls(&app.url).await;
    let trusting = [("WEBHOOK_SECRET", SECRET), ("SSL_CERT_FILE", CERTIFICATE)];
    let by_name = format!("https://localhost:{port}/");
    let reached = canary_with(&trusting, "stripe", &by_name, &[]).await;
    reached.ends(0).says("claimed in Postgres");

    // A certificate that no trusted authority has signed, or that is for another name. Sending the canary again would
    // not help.
    canary("stripe", &by_name)
        .await
        .ends(1)
        .says("TLS has failed: ");
    let by_address = format!("https://127.0.0.1:{port}/");
    let other = canary_with(&trusting, "stripe", &by_address, &[]).await;
    other.ends(1).says("TLS has failed: ");
    // Only a canary may be sent over https://.
    let send = ["send", "stripe", "--to", &by_name];
    run_in([("WEBHOOK_SECRET", SECRET)], &send, b"").is_error("https:// is only for --canary");
    assert_eq!(app.rows().await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_3_a_canary_says_what_stands_before_the_layer() {
    let layer = VerifiedWebhook::new("test", stripe());
    let outcome = |outcome| ([("x-webhook-outcome", outcome)], "done");
    let router = Router::new()
        .route("/verified", post(StatusCode::OK).layer(layer))
        .route("/moved", post(async || Redirect::permanent("/verified")))
        .route("/login", post((StatusCode::UNAUTHORIZED, "who are you?")))
        .route("/bare", post(StatusCode::OK))
        .route("/older", post(outcome("processed")))
        .route("/away", post(StatusCode::BAD_GATEWAY))
        .route(
            "/header",
            post(async |headers: HeaderMap| {
                let has_token = headers.get("x-gate").is_some_and(|token| token == "open");
                let status = if has_token {
                    StatusCode::OK
                } else {
                    StatusCode::FORBIDDEN
                };
                (status, [("x-webhook-outcome", "canary")])
            }),
        );
    let base = serve(router).await;
    let at = async |path: &str| canary("stripe", &format!("{base}{path}")).await;
    at("verified")
        .await
        .ends(0)
        .says("this layer claims nothing");
    at("moved")
        .await
        .ends(1)
        .says("A redirect to /verified: a provider does not follow it.");
    let login = at("login").await;
    login
        .ends(1)
        .says("401 without x-webhook-outcome")
        .says("has not reached the layer")
        .says("who are you?");
    at("bare").await.ends(1).says("has not reached the layer");
    at("nowhere")
        .await
        .ends(1)
        .says("404 without x-webhook-outcome");
    at("older")
        .await
        .ends(1)
        .says("has taken it for a delivery: its version does not know canaries");
    at("away").await.is_not_now("502 without x-webhook-outcome");
    let url = format!("{base}header");
    let variables = [("WEBHOOK_SECRET", SECRET)];
    canary_with(&variables, "stripe", &url, &["--header", "X-Gate: open"])
        .await
        .ends(0);
    canary("stripe", "http://127.0.0.1:1/")
        .await
        .is_not_now("no answer from 127.0.0.1:1");
    // A host name that does not resolve.
    canary("stripe", "http://nowhere.invalid/")
        .await
        .is_not_now("no answer from nowhere.invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_3_a_canary_is_not_possible_with_the_keys_of_each_provider() {
    let nowhere = "http://127.0.0.1:1/";
    for (provider, secret, reason) in [
        (
            "telegram",
            "a-token-of-the-bot",
            "its signature does not cover the body",
        ),
        (
            "discord",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "there is no private key",
        ),
        ("linear", SECRET, "the request cannot be signed"),
    ] {
        let run = canary_with(&[("WEBHOOK_SECRET", secret)], provider, nowhere, &[]).await;
        run.is_error(&format!("a canary of {provider} is not possible: "));
        assert!(run.err.contains(reason), "{}", run.err);
    }
    for option in [
        ["--event", "a"],
        ["--id", "a"],
        ["--body", "-"],
        ["--times", "2"],
    ] {
        let run = canary_with(&[("WEBHOOK_SECRET", SECRET)], "stripe", nowhere, &option).await;
        run.is_error("cannot be used with");
    }
}
