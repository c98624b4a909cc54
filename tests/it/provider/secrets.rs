//! Guarantee Y5: which of several secrets has verified a request.

use axum::Router;
use axum::http::request::Parts;
use axum::routing::post;
use idempotent_webhook::{IdempotentWebhook, Provider, Secret, Secrets, TenantSecrets, presets};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::support::{Database, assert_rows, github_delivery, logged, send, write_effect};

const OLDER: &str = "webhook verified by an older secret";

fn is(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn layer(database: &Database, provider: Provider) -> IdempotentWebhook {
    IdempotentWebhook::new(database.pool.clone(), "test", provider).only(["push"])
}

fn router(layer: &IdempotentWebhook) -> Router {
    Router::new().route("/{*path}", post(write_effect).layer(layer.clone()))
}

async fn deliver(router: &Router, path: &str, secret: &str, id: &str, event_type: &str) -> String {
    let delivery = github_delivery().uri(path).secret(is(secret));
    let delivery = delivery.id(id).event_type(event_type);
    send(router, delivery.request()).await.outcome
}

/// The counts by the position of the secret.
fn counted(exporter: &PrometheusHandle) -> Vec<(String, u64)> {
    let series = "idempotent_webhook_verified_by_secret_total{endpoint=\"test\",provider=\"github\",secret=\"";
    let rendered = exporter.render();
    let lines = rendered
        .lines()
        .filter_map(|line| line.strip_prefix(series));
    let mut counted: Vec<_> = lines
        .map(|line| {
            let (place, count) = line.split_once("\"} ").unwrap();
            (place.to_owned(), count.parse().unwrap())
        })
        .collect();
    counted.sort();
    counted
}

fn expect(places: &[(&str, u64)]) -> Vec<(String, u64)> {
    let places = places.iter();
    places
        .map(|(place, count)| ((*place).to_owned(), *count))
        .collect()
}

async fn activity(database: &Database) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select outcome, sum(count)::int8 from idempotent_webhook.activity
         where endpoint = 'test' and source = 'secret' group by outcome order by outcome",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn y5_an_older_secret_is_counted_by_its_place_and_told_once_a_day() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let secrets = Secrets::new(is("the new one"))
        .and(is("the old one"))
        .and(is("the oldest one"));
    let layer = layer(&database, presets::github(secrets));
    let router = router(&layer);
    assert_eq!(counted(&exporter), expect(&[("0", 0), ("1", 0), ("2", 0)]));

    let logged = logged(async {
        for (secret, id, event_type, outcome) in [
            ("the new one", "a", "push", "processed"),
            ("the old one", "b", "push", "processed"),
            ("the old one", "b", "push", "duplicate"),
            // An ignored event is authentic as well.
            ("the oldest one", "c", "star", "ignored"),
            ("another one", "d", "push", "rejected"),
        ] {
            assert_eq!(
                deliver(&router, "/hook", secret, id, event_type).await,
                outcome,
                "{id}"
            );
        }
    })
    .await;
    assert_eq!(counted(&exporter), expect(&[("0", 1), ("1", 2), ("2", 1)]));
    assert_eq!(logged.matches(OLDER).count(), 1, "{logged}");
    let line = logged.lines().find(|line| line.contains(OLDER)).unwrap();
    assert!(
        line.contains("INFO") && line.contains("endpoint=\"test\""),
        "{line}"
    );
    assert!(line.contains("secret=1"), "{line}");
    for secret in ["the new one", "the old one", "the oldest one"] {
        assert!(!logged.contains(secret), "{logged}");
        assert!(!exporter.render().contains(secret));
    }
    assert_rows!(database, claims: 2, effects: 2);

    layer.drained().await;
    let rows = [("0", 1), ("1", 2), ("2", 1)].map(|(place, count)| (place.to_owned(), count));
    assert_eq!(activity(&database).await, rows);
}

#[tokio::test]
async fn y5_a_single_secret_is_not_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let layer = layer(&database, presets::github(is("the only one")));
    let router = router(&layer);
    assert_eq!(
        deliver(&router, "/hook", "the only one", "a", "push").await,
        "processed"
    );
    layer.drained().await;
    assert_eq!(counted(&exporter), []);
    assert_eq!(activity(&database).await, []);
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn y5_each_tenant_with_an_older_secret_is_told_and_no_label_has_its_name() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let in_path = |head: &Parts| Some(head.uri.path().strip_prefix('/')?.to_owned());
    let secrets = TenantSecrets::new(in_path, async |tenant: String| {
        let new = Secret::new(format!("{tenant}, new"))?;
        Ok(Some(match &*tenant {
            "initech" => Secrets::new(new),
            // This tenant has more secrets than the metric distinguishes.
            "hooli" => (0..20).fold(Secrets::new(new), |secrets, number| {
                secrets.and(is(&format!("hooli, {number}")))
            }),
            _ => Secrets::new(new).and(Secret::new(format!("{tenant}, old"))?),
        }))
    });
    let layer = layer(&database, presets::github(secrets));
    let router = router(&layer);
    let logged = logged(async {
        for (tenant, secret, id) in [
            ("acme", "acme, old", "a"),
            ("acme", "acme, old", "b"),
            ("globex", "globex, old", "c"),
            ("initech", "initech, new", "d"),
            ("umbrella", "umbrella, new", "e"),
            ("hooli", "hooli, 15", "f"),
        ] {
            let path = format!("/{tenant}");
            assert_eq!(
                deliver(&router, &path, secret, id, "push").await,
                "processed",
                "{id}"
            );
        }
    })
    .await;
    let told: Vec<&str> = logged.lines().filter(|line| line.contains(OLDER)).collect();
    assert_eq!(told.len(), 3, "{logged}");
    for (line, tenant) in told.iter().zip(["acme", "globex", "hooli"]) {
        assert!(line.contains(&format!("tenant=\"{tenant}\"")), "{line}");
    }
    assert_eq!(counted(&exporter), expect(&[("*", 1), ("0", 1), ("1", 3)]));
    assert!(!exporter.render().contains("acme"));
    assert_rows!(database, claims: 6, effects: 6);
}
