//! Guarantee Y4: how long the sender waits, measured from the time of its signature.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::provider::signature::{Hmac, Tolerance};
use idempotent_webhook::{
    IdempotentWebhook, Keep, Provider, Recovery, Source, VerifiedWebhook, presets,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::support::{
    Database, Failing, assert_rows, gated, github, now, secret, send, soon, spawn_send, stripe,
    write_effect,
};

const WAIT: &str = "idempotent_webhook_sender_wait_seconds";
const DEADLINE: &str = "idempotent_webhook_response_deadline_seconds";

/// How many waits were measured for an endpoint, and how many of them took up to a minute.
#[derive(Debug, Default, PartialEq, Eq)]
struct Waits {
    all: u64,
    short: u64,
}

fn waits(exporter: &PrometheusHandle, endpoint: &str) -> Waits {
    let rendered = exporter.render();
    let of = |name: String| {
        let line = rendered.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.parse().unwrap())
    };
    let labels = format!("endpoint=\"{endpoint}\",provider=\"stripe\"");
    Waits {
        all: of(format!("{WAIT}_count{{{labels}}} ")),
        short: of(format!("{WAIT}_bucket{{{labels},le=\"60\"}} ")),
    }
}

/// An exporter with a bucket of one minute. All signing times in this file are far from that limit.
fn exporter() -> (
    PrometheusHandle,
    metrics_exporter_prometheus::PrometheusRecorder,
) {
    let wait = Matcher::Full(WAIT.to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(wait, &[60.0]);
    let recorder = builder.unwrap().build_recorder();
    (recorder.handle(), recorder)
}

fn event(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"invoice.paid"}}"#)
}

#[tokio::test]
async fn y4_the_wait_is_from_the_signed_time_to_the_answer() {
    let (exporter, recorder) = exporter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let provider = || presets::stripe(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "waited", provider());
    let router = Router::new()
        .route("/", post(write_effect).layer(layer.only(["invoice.paid"])))
        .route(
            "/verified",
            post(StatusCode::OK).layer(VerifiedWebhook::new("verified", provider())),
        );
    let outcome = async |body: &str, time| send(&router, stripe(body, time)).await.outcome;

    assert_eq!(outcome(&event("a"), now() - 200).await, "processed");
    assert_eq!(waits(&exporter, "waited"), Waits { all: 1, short: 0 });
    assert_eq!(outcome(&event("a"), now() - 200).await, "duplicate");
    assert_eq!(waits(&exporter, "waited"), Waits { all: 2, short: 0 });
    // The provider's clock is ahead.
    assert_eq!(outcome(&event("b"), now() + 10_000).await, "processed");
    assert_eq!(waits(&exporter, "waited"), Waits { all: 3, short: 1 });
    assert_rows!(database, claims: 2, effects: 2);

    // For rejected and ignored requests, nobody waits for a result, so their waits are not
    // measured.
    assert_eq!(outcome(&event("c"), now() - 10_000).await, "rejected");
    let ignored = r#"{"id":"d","type":"charge.failed"}"#;
    assert_eq!(outcome(ignored, now() - 200).await, "ignored");
    assert_eq!(waits(&exporter, "waited"), Waits { all: 3, short: 1 });

    let mut verified = stripe(event("a"), now() - 200);
    *verified.uri_mut() = "/verified".parse().unwrap();
    assert_eq!(send(&router, verified).await.outcome, "verified");
    assert_eq!(waits(&exporter, "verified"), Waits { all: 1, short: 0 });
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn y4_a_sender_that_hangs_up_has_waited_until_then() {
    let (exporter, recorder) = exporter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let (mut gate, handler) = gated();
    let provider = presets::stripe(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "left", provider);
    let router = Router::new().route("/", post(handler).layer(layer.clone()));
    let sender = spawn_send(&router, stripe(event("a"), now() - 200));
    gate.reached().await;
    assert_eq!(waits(&exporter, "left"), Waits::default());
    sender.abort();
    assert!(sender.await.unwrap_err().is_cancelled());
    assert_eq!(waits(&exporter, "left"), Waits { all: 1, short: 0 });
    gate.open();
    soon(layer.drained()).await;
    assert_eq!(waits(&exporter, "left"), Waits { all: 1, short: 0 });
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn y4_what_runs_in_the_background_keeps_nobody_waiting() {
    let (exporter, recorder) = exporter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let recovery = Recovery::new(database.pool.clone());
    let layer = IdempotentWebhook::new(database.pool.clone(), "kept", presets::stripe(secret()))
        .keep(Keep::failed(&recovery).retry_delays([Duration::ZERO]));
    let handler = Failing::times(1).handler();
    let router = Router::new().route("/", post(handler).layer(layer));
    let sent = send(&router, stripe(event("a"), now() - 200)).await;
    assert_eq!(sent.outcome, "kept");
    assert_eq!(recovery.run_due(&router).await.unwrap().len(), 1);
    assert_eq!(waits(&exporter, "kept"), Waits { all: 1, short: 0 });
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn y4_nothing_is_measured_that_the_signature_does_not_tell() {
    let (exporter, recorder) = exporter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let tolerance = Tolerance::past_only(Duration::from_secs(3 * 24 * 60 * 60));
    let patient = presets::stripe(secret()).tolerance(tolerance);
    let layer = |endpoint, provider: Provider| {
        post(write_effect).layer(IdempotentWebhook::new(
            database.pool.clone(),
            endpoint,
            provider,
        ))
    };
    let router = Router::new()
        // A retry may be signed with the time of the first attempt.
        .route("/", layer("patient", patient))
        .route("/github", layer("untimed", presets::github(secret())));
    let sent = send(&router, stripe(event("a"), now() - 200)).await;
    assert_eq!(sent.outcome, "processed");
    let mut untimed = github("a", "{}");
    *untimed.uri_mut() = "/github".parse().unwrap();
    assert_eq!(send(&router, untimed).await.outcome, "processed");
    assert!(!exporter.render().contains(WAIT), "{}", exporter.render());
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn y4_the_deadline_is_there_if_it_is_published_or_set() {
    let (exporter, recorder) = exporter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let acme = || {
        let signature = "x-acme-signature".parse().unwrap();
        Provider::custom("acme")
            .signature(Hmac::hex(signature), secret())
            .delivery_id(Source::body_digest())
    };
    let set = acme().response_deadline(Duration::from_millis(2500));
    let _layers = [
        VerifiedWebhook::new("published", presets::github(secret())),
        VerifiedWebhook::new("assumed", presets::stripe(secret())),
        VerifiedWebhook::new("unknown", acme()),
        VerifiedWebhook::new("set", set),
    ];
    let rendered = exporter.render();
    let mut told: Vec<_> = rendered
        .lines()
        .filter_map(|line| line.strip_prefix(DEADLINE)?.strip_prefix('{'))
        .collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "endpoint=\"published\",provider=\"github\"} 10",
            "endpoint=\"set\",provider=\"acme\"} 2.5",
        ]
    );
}
