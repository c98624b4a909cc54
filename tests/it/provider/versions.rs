//! Guarantee Y3: a payload in another version than the handler expects is reported, and never
//! refused.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderName;
use axum::routing::post;
use idempotent_webhook::provider::signature::Hmac;
use idempotent_webhook::recovery::Problem;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{IdempotentWebhook, Keep, Provider, Recovery, Source, presets};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::support::{
    Database, assert_rows, logged, secret, send, soon, stripe_delivery, write_effect,
};

const CAL_VERSION: HeaderName = HeaderName::from_static("x-cal-webhook-version");
const OTHER: &str = "webhook of another version or mode than the expected one";

fn stripe(database: &Database) -> IdempotentWebhook {
    let provider = presets::stripe(secret()).expect_version("2025-09-30.clover");
    IdempotentWebhook::new(database.pool.clone(), "test", provider)
}

fn router(layer: &IdempotentWebhook) -> Router {
    Router::new().route("/", post(write_effect).layer(layer.clone()))
}

async fn deliver(router: &Router, id: &str, event_type: &str, version: &str) -> String {
    let body = format!(r#"{{"api_version":{version},"id":"{id}","type":"{event_type}"}}"#);
    send(router, stripe_delivery(body).request()).await.outcome
}

async fn activity(database: &Database) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select outcome, sum(count)::int8 from idempotent_webhook.activity
         where endpoint = 'test' and source = 'version' group by outcome order by outcome",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn y3_another_version_is_handled_and_told() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let layer = stripe(&database).only(["invoice.paid"]);
    let router = router(&layer);
    let counted = || {
        let rendered = exporter.render();
        let series =
            "idempotent_webhook_other_version_total{endpoint=\"test\",provider=\"stripe\"} ";
        let line = rendered.lines().find_map(|line| line.strip_prefix(series));
        line.map(|count| count.parse::<u64>().unwrap())
    };
    assert_eq!(counted(), Some(0));
    let logged = logged(async {
        for (id, event_type, version, outcome) in [
            ("a", "invoice.paid", "\"2025-09-30.clover\"", "processed"),
            // The version of a thin event is null.
            ("b", "invoice.paid", "null", "processed"),
            ("c", "invoice.paid", "{}", "processed"),
            ("d", "invoice.paid", "\"2026-01-28.dahlia\"", "processed"),
            ("d", "invoice.paid", "\"2026-01-28.dahlia\"", "duplicate"),
            ("e", "charge.failed", "\"2020-08-27\"", "ignored"),
        ] {
            assert_eq!(
                deliver(&router, id, event_type, version).await,
                outcome,
                "{id}"
            );
        }
    })
    .await;
    assert_eq!(counted(), Some(4));
    let told: Vec<&str> = logged.lines().filter(|line| line.contains(OTHER)).collect();
    assert_eq!(told.len(), 3, "{logged}");
    let versions = ["(unreadable)", "2026-01-28.dahlia", "2020-08-27"];
    for (line, version) in told.iter().zip(versions) {
        assert!(
            line.contains("WARN") && line.contains("endpoint=\"test\""),
            "{line}"
        );
        assert!(line.contains(&format!("version=\"{version}\"")), "{line}");
        assert!(line.contains("expected=\"2025-09-30.clover\""), "{line}");
        assert!(line.contains("is_signed=true"), "{line}");
    }
    assert_rows!(database, claims: 4, effects: 4);
    layer.drained().await;
    let rows = [
        ("(unreadable)", 1),
        ("2020-08-27", 1),
        ("2026-01-28.dahlia", 2),
    ];
    assert_eq!(
        activity(&database).await,
        rows.map(|(version, count)| (version.to_owned(), count))
    );
}

/// Shopify's version header is not signed.
#[tokio::test]
async fn y3_versions_in_an_unsigned_header_are_bounded_and_marked() {
    let database = Database::new().await;
    let provider = || presets::shopify(secret()).expect_version("2025-10");
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider());
    let router = router(&layer);
    let logged = logged(async {
        for number in 0..30 {
            let delivery = TestDelivery::new(&provider())
                .id(format!("id-{number}"))
                .event_type("orders/create")
                .header(
                    HeaderName::from_static("x-shopify-api-version"),
                    &format!("made up {number:02}"),
                );
            let sent = send(&router, delivery.request()).await;
            assert_eq!(sent.outcome, "processed", "{number}");
        }
        let expected = TestDelivery::new(&provider())
            .id("expected")
            .event_type("orders/create")
            .header(HeaderName::from_static("shopify-api-version"), "2025-10")
            .header(HeaderName::from_static("x-shopify-api-version"), "made up");
        assert_eq!(send(&router, expected.request()).await.outcome, "processed");
    })
    .await;
    assert_eq!(logged.matches(OTHER).count(), 10, "{logged}");
    assert_eq!(logged.matches("is_signed=false").count(), 10, "{logged}");
    layer.drained().await;
    let rows = activity(&database).await;
    assert_eq!(rows.len(), 11, "{rows:?}");
    assert_eq!(rows[0], ("*".to_owned(), 20));
    assert_eq!(rows[10], ("made up 09".to_owned(), 1));
    assert_rows!(database, claims: 31, effects: 31);
}

/// Two processes, and later a third one that expects the new version.
#[tokio::test(flavor = "multi_thread")]
async fn y3_the_problem_is_told_once_and_is_over_when_the_version_is_expected() {
    let database = Database::new().await;
    let told: Arc<Mutex<Vec<(Problem, bool)>>> = Arc::default();
    let process = async |versions: &[&str]| {
        let pool = database.another_pool(5).await;
        let told = told.clone();
        let recovery = Recovery::new(pool.clone())
            .on_change(move |change| told.lock().unwrap().push((change.problem, change.is_over)));
        let provider = versions
            .iter()
            .fold(presets::stripe(secret()), |provider, version| {
                provider.expect_version(*version)
            });
        let layer = IdempotentWebhook::new(pool, "test", provider).keep(Keep::failed(&recovery));
        (recovery, router(&layer), layer)
    };
    // Each process looks for problems once.
    let look = async |recovery: Recovery, router: &Router| {
        database
            .run("update idempotent_webhook.kept_endpoints set served_at = null")
            .await;
        let running = recovery.spawn(router.clone());
        database
            .until(
                "exists (
                    select from idempotent_webhook.kept_endpoints
                    where endpoint = 'test' and served_at is not null
                )",
            )
            .await;
        running.stop().await;
    };
    let until_told = async |number: usize| {
        soon(async {
            while told.lock().unwrap().len() < number {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
    };
    let new = "\"2026-01-28.dahlia\"";
    let old = ["2025-09-30.clover"];
    let (first, first_router, first_layer) = process(&old).await;
    assert_eq!(
        deliver(&first_router, "a", "invoice.paid", "\"2025-09-30.clover\"").await,
        "processed"
    );
    first_layer.drained().await;
    look(first.clone(), &first_router).await;
    assert_eq!(*told.lock().unwrap(), []);

    assert_eq!(
        deliver(&first_router, "b", "invoice.paid", new).await,
        "processed"
    );
    first_layer.drained().await;
    look(first, &first_router).await;
    until_told(1).await;
    let (second, second_router, second_layer) = process(&old).await;
    assert_eq!(
        deliver(&second_router, "c", "invoice.paid", new).await,
        "processed"
    );
    second_layer.drained().await;
    look(second, &second_router).await;
    assert_eq!(*told.lock().unwrap(), [(Problem::OtherVersion, false)]);
    assert_rows!(database, claims: 3, effects: 3);

    let (third, third_router, third_layer) = process(&[old[0], "2026-01-28.dahlia"]).await;
    assert_eq!(
        deliver(&third_router, "d", "invoice.paid", new).await,
        "processed"
    );
    third_layer.drained().await;
    look(third, &third_router).await;
    until_told(2).await;
    assert_eq!(
        *told.lock().unwrap(),
        [
            (Problem::OtherVersion, false),
            (Problem::OtherVersion, true)
        ]
    );
    assert_rows!(database, claims: 4, effects: 4);
    database
        .until("not exists (select from idempotent_webhook.problems)")
        .await;
}

/// Stripe signs the test events of connected accounts with the secret of the live endpoint.
#[tokio::test]
async fn y3_an_event_of_the_other_mode_is_handled_and_told() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let provider = presets::stripe(secret()).expect_livemode(true);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider);
    let router = router(&layer);
    let logged = logged(async {
        for (id, livemode, outcome) in [
            ("a", "true", "processed"),
            ("b", "false", "processed"),
            ("b", "false", "duplicate"),
            ("c", "null", "processed"),
        ] {
            let body = format!(r#"{{"id":"{id}","livemode":{livemode},"type":"invoice.paid"}}"#);
            let sent = send(&router, stripe_delivery(body).request()).await;
            assert_eq!(sent.outcome, outcome, "{id}");
        }
    })
    .await;
    let told: Vec<&str> = logged.lines().filter(|line| line.contains(OTHER)).collect();
    let [line] = told[..] else { panic!("{logged}") };
    for field in [
        "version=\"test mode\"",
        "expected=\"live mode\"",
        "is_signed=true",
    ] {
        assert!(line.contains(field), "{line}");
    }
    let count = "idempotent_webhook_other_version_total{endpoint=\"test\",provider=\"stripe\"} 2";
    assert!(exporter.render().contains(count), "{}", exporter.render());
    assert_rows!(database, claims: 3, effects: 3);
    layer.drained().await;
    assert_eq!(activity(&database).await, [("test mode".to_owned(), 2)]);
    database
        .until("(select settings -> 'expected_versions' = '[\"live mode\"]' from idempotent_webhook.endpoint_settings)")
        .await;
}

#[test]
#[should_panic(expected = "the bodies of github do not say whether they are live")]
fn y3_a_provider_without_modes_can_expect_none() {
    let _ = presets::github(secret()).expect_livemode(true);
}

#[test]
#[should_panic(expected = "the requests of github have no version that could be \"2022-11-28\"")]
fn y3_a_provider_without_a_version_can_expect_none() {
    let _ = presets::github(secret()).expect_version("2022-11-28");
}

/// A custom provider declares where its version is.
#[tokio::test]
async fn y3_a_provider_without_a_preset_has_its_version_where_it_is_said() {
    let provider = Provider::custom("acme")
        .signature(Hmac::hex("x-acme-signature".parse().unwrap()), secret())
        .delivery_id(Source::json("$.id".parse().unwrap()))
        .payload_version(Source::json("$.meta.version".parse().unwrap()))
        .expect_version("7");
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider.clone());
    let router = router(&layer);
    for (id, version) in [("a", 7), ("b", 8)] {
        let body = format!(r#"{{"id":"{id}","meta":{{"version":{version}}}}}"#);
        let delivery = TestDelivery::new(&provider).body(body);
        assert_eq!(send(&router, delivery.request()).await.outcome, "processed");
    }
    layer.drained().await;
    assert_eq!(activity(&database).await, [("8".to_owned(), 1)]);
    assert_rows!(database, claims: 2, effects: 2);
}

/// Each body has the fields from the provider's own documentation.
#[tokio::test]
async fn y3_presets_read_the_version_that_their_provider_documents() {
    let database = Database::new().await;
    for (provider, body) in [
        (
            presets::notion(secret()),
            r#"{"id":"n","type":"page.created","attempt_number":1,"api_version":"found"}"#,
        ),
        (
            presets::okta(secret()),
            r#"{"eventType":"com.okta.event_hook","eventTypeVersion":"found","eventId":"o"}"#,
        ),
        (
            presets::terraform_cloud(secret()),
            r#"{"payload_version":"found","run_id":"r","notifications":[{"trigger":"run:errored"}]}"#,
        ),
        (
            presets::xendit(secret()),
            r#"{"event":"payment.capture","api_version":"found","data":{"payment_id":"p"}}"#,
        ),
        (
            presets::airwallex(secret()),
            r#"{"id":"a","name":"payment_intent.succeeded","version":"found"}"#,
        ),
        (
            presets::coinbase_commerce(secret()),
            r#"{"event":{"id":"c","type":"charge:confirmed","api_version":"found"}}"#,
        ),
        (
            presets::mercadopago(secret()),
            r#"{"id":1,"type":"payment","api_version":"found","data":{"id":"m"}}"#,
        ),
        (
            presets::cal(secret()),
            r#"{"triggerEvent":"BOOKING_CREATED","createdAt":"2026-11-01T00:00:00Z"}"#,
        ),
    ] {
        let provider = provider.expect_version("expected");
        let mut delivery = TestDelivery::new(&provider).body(body);
        if provider.name() == "cal" {
            delivery = delivery.header(CAL_VERSION, "found");
        }
        let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider);
        let sent = send(&router(&layer), delivery.request()).await;
        assert_eq!(sent.outcome, "processed", "{body}");
        layer.drained().await;
    }
    assert_eq!(activity(&database).await, [("found".to_owned(), 8)]);
    assert_rows!(database, claims: 8, effects: 8);
}
