//! The application's code panics before the handler runs, in each place where it is called, and in both kinds of
//! layers.

use std::future::{Ready, ready};

use axum::Router;
use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::routing::post;
use http_body_util::BodyExt;
use idempotent_webhook::provider::Handshake;
use idempotent_webhook::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use idempotent_webhook::{
    IdempotentWebhook, Provider, Secret, Secrets, Source, TenantSecrets, VerifiedWebhook, presets,
};
use metrics_exporter_prometheus::PrometheusBuilder;
use tower::ServiceExt;

use crate::support::{Database, assert_rows, github, logged, secret, write_effect};

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn panics<T>() -> T {
    panic!("on purpose")
}

#[derive(Debug)]
struct Panics {
    in_the_head: bool,
}

impl SignatureScheme for Panics {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        // When the layer is built, this is called with an empty head.
        match self.in_the_head && !head.headers.is_empty() {
            true => panics(),
            false => Ok(()),
        }
    }

    fn verify(&self, _: &SignedRequest<'_>, _: &Secrets) -> Result<Signed, SignatureError> {
        panics()
    }

    fn sign(&self, _: &mut UnsignedRequest, _: &Secret) -> Result<(), SignError> {
        Ok(())
    }
}

fn with_scheme(in_the_head: bool) -> Provider {
    Provider::custom("acme")
        .signature(Panics { in_the_head }, secret())
        .delivery_id(Source::header(HeaderName::from_static("x-github-delivery")))
}

fn exchanging() -> Provider {
    presets::github(secret())
        .signed_handshake(|_| Some(Handshake::empty("hello").with_secret(secret())))
}

/// Providers with a panic in each place, by the name of the place.
fn providers() -> Vec<(&'static str, Provider)> {
    type Found = Ready<Result<Option<Secret>, Failed>>;
    let tenant = |_: &Parts| Some("acme".to_owned());
    let found = |_| ready(Ok::<_, Failed>(Some(secret())));
    let tenant_panics = TenantSecrets::new(|_: &Parts| panics(), found);
    let lookup_panics = TenantSecrets::new(tenant, |_| panics::<Found>());
    let lookup_panics_later = TenantSecrets::new(tenant, |_| async {
        panics::<Result<Option<Secret>, Failed>>()
    });
    let confirmed = presets::github(secret())
        .signed_handshake(|_| Some(Handshake::empty("hello").confirmed_at("https://acme.test/")));
    vec![
        ("tenant function", presets::github(tenant_panics)),
        ("lookup", presets::github(lookup_panics)),
        ("lookup, later", presets::github(lookup_panics_later)),
        ("scheme, at the head", with_scheme(true)),
        ("scheme", with_scheme(false)),
        (
            "unsigned handshake",
            presets::github(secret()).unsigned_handshake(|_| panics()),
        ),
        (
            "signed handshake",
            presets::github(secret()).signed_handshake(|_| panics()),
        ),
        (
            "secret exchange",
            exchanging().secret_exchange(|_, _| panics::<Ready<_>>()),
        ),
        (
            "secret exchange, later",
            exchanging().secret_exchange(|_, _| async { panics() }),
        ),
        (
            "confirmation",
            confirmed
                .clone()
                .confirm_subscription(|_| panics::<Ready<_>>()),
        ),
        (
            "confirmation, later",
            confirmed.confirm_subscription(|_| async { panics() }),
        ),
    ]
}

/// Asserts that the panic is answered, logged and counted like a failed lookup of secrets.
async fn fails_and_is_told(place: &str, app: Router) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    // The recorder is set for this thread, which is the only thread of the test's runtime.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let log = logged(async {
        let request: axum::http::Request<Body> = github("a", "{}");
        let response = app.oneshot(request).await.unwrap();
        assert_eq!(
            response.status(),
            StatusCode::SERVICE_UNAVAILABLE,
            "{place}"
        );
        assert_eq!(response.headers()["x-webhook-outcome"], "failed", "{place}");
        assert_eq!(response.headers()[RETRY_AFTER], "5", "{place}");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "temporarily unavailable", "{place}");
    })
    .await;
    let error = log.lines().find(|line| line.contains("ERROR"));
    assert!(
        error.is_some_and(|line| line.contains("panicked") && line.contains("on purpose")),
        "{place}: {log}"
    );
    let counted = exporter.render();
    let counted = counted
        .lines()
        .find(|line| line.contains("deliveries_total") && line.contains("outcome=\"failed\""));
    assert!(
        counted.is_some_and(|line| line.ends_with(" 1")),
        "{place}: {counted:?}"
    );
}

#[tokio::test]
async fn p7_a_panic_before_the_handler_is_answered_logged_and_counted() {
    let database = Database::new().await;
    for (place, provider) in providers() {
        let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider);
        let app = Router::new().route("/", post(write_effect).layer(layer.clone()));
        fails_and_is_told(place, app).await;
        layer.drained().await;
    }
    assert_rows!(database, claims: 0, effects: 0);
    let failed =
        "select sum(count)::int8 from idempotent_webhook.activity where outcome = 'failed'";
    assert_eq!(database.count(failed).await, providers().len() as i64);
}

#[tokio::test]
async fn p7_a_panic_before_the_handler_of_a_layer_that_only_verifies_is_answered_logged_and_counted()
 {
    for (place, provider) in providers() {
        let layer = VerifiedWebhook::new("test", provider);
        let handler = post(async || -> StatusCode { panic!("the handler was called") });
        let app = Router::new().route("/", handler.layer(layer));
        fails_and_is_told(place, app).await;
    }
}
