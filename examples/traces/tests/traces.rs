//! What an exporter of OpenTelemetry receives.

use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Keep, Outcome, Secret, presets};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use sqlx::PgPool;
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tower::ServiceExt;
use tracing_subscriber::layer::SubscriberExt;

/// Fails at the first attempt.
async fn push(_: DedupeTx, delivery: Delivery) -> StatusCode {
    match delivery.attempt() {
        1 => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    }
}

fn of_name<'a>(spans: &'a [SpanData], name: &str) -> Vec<&'a SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn value(span: &SpanData, name: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|one| one.key.as_str() == name);
    attribute.map(|one| one.value.to_string())
}

#[tokio::test]
async fn q3_a_failure_and_its_recovery_are_one_trace() -> Result<(), Box<dyn std::error::Error>> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;

    let server = ThrowawayPostgres::start(Durability::Lossy).await?;
    let pool = PgPool::connect_with(server.options("postgres")).await?;
    idempotent_webhook::migrate(&pool).await?;
    let recovery = traces::recovery(pool.clone());
    let github = presets::github(Secret::new("a secret")?);
    let webhook = IdempotentWebhook::new(pool.clone(), "deployments", github.clone())
        .keep(Keep::failed(&recovery));
    let app = traces::app(post(push).layer(webhook));

    let delivery = TestDelivery::new(&github).uri("/webhooks/github");
    let response = app.clone().oneshot(delivery.request::<Body>()).await?;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    sqlx::query("update idempotent_webhook.kept_deliveries set next_attempt_at = now()")
        .execute(&pool)
        .await?;
    let results = recovery.run_due(&app).await?;
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].outcome, Some(Outcome::Processed));
    // This header names another trace. A sender must not be able to choose the trace.
    let chosen = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let other = delivery
        .id("other")
        .header("traceparent".try_into()?, chosen);
    app.oneshot(other.request::<Body>()).await?;

    let spans = exporter.get_finished_spans()?;
    let [first, second, other] = of_name(&spans, "request")[..] else {
        panic!("{spans:#?}");
    };
    let trace = first.span_context.trace_id();
    assert_eq!(second.span_context.trace_id(), trace);
    assert_eq!(second.parent_span_id, first.span_context.span_id());
    assert_ne!(other.span_context.trace_id(), trace);
    assert_ne!(other.span_context.trace_id().to_string(), chosen[3..35]);
    let webhooks = of_name(&spans, "webhook");
    let told: Vec<_> = webhooks
        .iter()
        .map(|span| (value(span, "outcome"), value(span, "attempt")))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        (text("kept"), None),
        (text("processed"), text("2")),
        (text("kept"), None),
    ];
    assert_eq!(told, expected);
    // The log shows the context to applications without OpenTelemetry.
    let context = first.span_context.clone();
    let traceparent = format!("00-{trace}-{}-01", context.span_id());
    assert_eq!(value(webhooks[1], "traceparent"), Some(traceparent));
    assert_eq!(value(webhooks[0], "traceparent"), None);
    Ok(())
}
