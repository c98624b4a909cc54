//! Secrets by tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::presets::LiveKitKey;
use idempotent_webhook::provider::ResolvedTenant;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, IdempotentWebhook, Secret, Secrets, TenantSecrets, presets,
};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::support::{
    Answer, Database, answer, assert_rows, github_delivery, insert_effect, let_pass, logged, send,
    soon,
};

/// The tenants and their secrets, and the tenants that were looked up.
#[derive(Clone, Default)]
struct Tenants {
    secrets: Arc<Mutex<HashMap<String, String>>>,
    looked_up: Arc<Mutex<Vec<String>>>,
}

impl Tenants {
    fn set(&self, tenant: &str, secret: &str) {
        let mut secrets = self.secrets.lock().unwrap();
        secrets.insert(tenant.to_owned(), secret.to_owned());
    }

    fn looked_up(&self) -> Vec<String> {
        std::mem::take(&mut self.looked_up.lock().unwrap())
    }

    fn secrets(&self) -> TenantSecrets {
        let tenants = self.clone();
        let in_path = |head: &Parts| Some(head.uri.path().strip_prefix("/hooks/")?.to_owned());
        TenantSecrets::new(in_path, move |tenant| {
            let secret = tenants.secrets.lock().unwrap().get(&tenant).cloned();
            tenants.looked_up.lock().unwrap().push(tenant.clone());
            async move {
                match &*tenant {
                    "broken" => Err("the vault is sealed".into()),
                    "hanging" => std::future::pending().await,
                    _ => Ok(secret.map(Secret::new).transpose()?.map(Secrets::new)),
                }
            }
        })
    }
}

async fn handler(mut tx: DedupeTx, delivery: Delivery) -> String {
    insert_effect(&mut tx, &delivery).await.unwrap();
    delivery.tenant().unwrap().to_owned()
}

fn router(database: &Database, secrets: TenantSecrets) -> Router {
    router_with(database, secrets, |layer| layer)
}

fn router_with(
    database: &Database,
    secrets: TenantSecrets,
    set: impl FnOnce(IdempotentWebhook) -> IdempotentWebhook,
) -> Router {
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secrets));
    Router::new().route("/hooks/{tenant}", post(handler).layer(set(layer)))
}

fn request(tenant: &str, secret: &str, id: &str) -> Request<Body> {
    github_delivery()
        .secret(Secret::new(secret).unwrap())
        .uri(&format!("/hooks/{tenant}"))
        .id(id)
        .request()
}

fn forged() -> Answer {
    answer(401, "rejected", "signature missing or not valid")
}

#[tokio::test]
async fn each_tenant_has_its_own_secret_and_an_unknown_one_is_a_401() {
    let database = Database::new().await;
    let tenants = Tenants::default();
    tenants.set("acme", "acme's secret");
    tenants.set("globex", "globex's secret");
    let router = router(&database, tenants.secrets());

    let by_acme = request("acme", "acme's secret", "a");
    assert_eq!(
        send(&router, by_acme).await,
        answer(200, "processed", "acme")
    );
    let by_globex = request("globex", "globex's secret", "b");
    assert_eq!(
        send(&router, by_globex).await,
        answer(200, "processed", "globex")
    );
    for (tenant, secret) in [
        ("globex", "acme's secret"),
        ("nobody", "acme's secret"),
        ("nobody", "bm9ib2R5"),
        ("%00", "acme's secret"),
    ] {
        let sent = request(tenant, secret, "c");
        assert_eq!(send(&router, sent).await, forged(), "{tenant}");
    }
    assert_rows!(database, claims: 2, effects: 2);
}

/// The value of a tenant's counter.
fn requests_of(rendered: &str, tenant: &str, result: &str) -> Option<u64> {
    let series = format!(
        "idempotent_webhook_tenant_requests_total{{endpoint=\"test\",provider=\"github\",tenant=\"{tenant}\",\
         result=\"{result}\"}} "
    );
    let line = rendered
        .lines()
        .find_map(|line| line.strip_prefix(&series))?;
    Some(line.parse().unwrap())
}

#[tokio::test]
async fn g13_a_tenant_whose_secret_is_wrong_is_named_once_its_lookup_has_found_it() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    // The recorder is set for this thread, which is the only thread of the test's runtime.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let tenants = Tenants::default();
    tenants.set("acme", "acme's secret");
    tenants.set("globex", "globex's secret");
    let github = presets::github(tenants.secrets().cache(0, Duration::ZERO));
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", github);
    let route = post(handler).layer(layer.clone());
    let router = Router::new().route("/hooks/{tenant}", route);
    let rejected = async |tenant: &str| {
        let sent = request(tenant, "another secret", "a");
        logged(async {
            assert_eq!(send(&router, sent).await, forged());
        })
        .await
    };

    let by_acme = request("acme", "acme's secret", "a");
    assert_eq!(send(&router, by_acme).await.outcome, "processed");
    let rendered = exporter.render();
    assert!(!rendered.contains("acme"), "nothing is counted: {rendered}");
    for _ in 0..2 {
        let log = rejected("globex").await;
        for part in ["WARN", r#"tenant="globex""#, r#"route="/hooks/{tenant}""#] {
            assert!(log.contains(part), "{part}: {log}");
        }
    }
    // A tenant name that the sender has invented appears nowhere.
    let log = rejected("made-up").await;
    assert!(log.contains(r#"route="/hooks/{tenant}""#), "{log}");
    assert!(!log.contains("made-up"), "{log}");
    let right = request("globex", "globex's secret", "b");
    assert_eq!(send(&router, right).await.outcome, "processed");

    // The secret is right, but the id is missing.
    let mut without_id = request("globex", "globex's secret", "c");
    without_id.headers_mut().remove("x-github-delivery");
    assert_eq!(send(&router, without_id).await.status, 400);

    let rendered = exporter.render();
    assert_eq!(requests_of(&rendered, "globex", "rejected"), Some(2));
    assert_eq!(requests_of(&rendered, "globex", "authentic"), Some(2));
    for unknown in ["made-up", "acme"] {
        assert!(!rendered.contains(unknown), "{rendered}");
    }
    layer.drained().await;
    let reasons: Vec<String> =
        sqlx::query_scalar("select reason from idempotent_webhook.rejections order by cause")
            .fetch_all(&database.pool)
            .await
            .unwrap();
    let [no_match, without_id, unknown] = &reasons[..] else {
        panic!("{reasons:?}");
    };
    assert!(
        no_match.starts_with("tenant globex: signature matches none"),
        "{no_match}"
    );
    assert!(without_id.starts_with("tenant globex: "), "{without_id}");
    assert!(!unknown.contains("made-up"), "{unknown}");
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn g14_tenants_are_counted_by_name_up_to_a_hundred() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let tenants = Tenants::default();
    let router = router(&database, tenants.secrets());
    for number in 0..105 {
        let name = format!("tenant-{number}");
        tenants.set(&name, "a secret");
        let sent = request(&name, "another secret", "a");
        assert_eq!(send(&router, sent).await, forged());
    }
    let rendered = exporter.render();
    let count = rendered.matches("result=\"rejected\"} 1\n").count();
    assert_eq!(count, 100, "{rendered}");
    assert_eq!(requests_of(&rendered, "*", "rejected"), Some(5));
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn tenants_have_values_of_the_presets_own_type() {
    let database = Database::new().await;
    let in_path = |head: &Parts| Some(head.uri.path().strip_prefix("/hooks/")?.to_owned());
    // Secrets as the text of a database column, and as values of their own type.
    let texts = TenantSecrets::new(in_path, async |name: String| {
        Ok(Some(format!("{name}:a secret").parse::<LiveKitKey>()?))
    });
    let values = TenantSecrets::new(in_path, async |name: String| {
        let key = LiveKitKey::new(name.as_str(), Secret::new("a secret")?)?;
        let old = LiveKitKey::new(name, Secret::new("an old secret")?)?;
        Ok(Some(Secrets::new(key).and(old)))
    });
    for (endpoint, secrets, is_old_valid) in [("texts", texts, false), ("values", values, true)] {
        let livekit = presets::livekit(secrets).rejection_status(StatusCode::UNAUTHORIZED);
        let layer = IdempotentWebhook::new(database.pool.clone(), endpoint, livekit.clone());
        let router = Router::new().route("/hooks/{tenant}", post(handler).layer(layer));
        for (name, secret, is_valid) in [
            ("acme", "a secret", true),
            ("acme", "an old secret", is_old_valid),
            ("globex", "a secret", false),
        ] {
            let key = LiveKitKey::new(name, Secret::new(secret).unwrap()).unwrap();
            let delivery = TestDelivery::new(&livekit).secret(key).id(secret);
            let sent = delivery.uri("/hooks/acme").request();
            let expected = match is_valid {
                true => answer(200, "processed", "acme"),
                false => forged(),
            };
            assert_eq!(
                send(&router, sent).await,
                expected,
                "{endpoint} {name} {secret}"
            );
        }
    }
    assert_rows!(database, claims: 3, effects: 3);
}

#[tokio::test]
async fn g2_a_name_that_no_key_can_hold_is_nobodys() {
    let database = Database::new().await;
    let names = |head: &Parts| {
        Some(match head.uri.path() {
            "/hooks/blank" => " ".to_owned(),
            "/hooks/nul" => "\0".to_owned(),
            "/hooks/long" => "x".repeat(256),
            _ => return None,
        })
    };
    let everybody = async |_| Ok(Some(Secrets::new(Secret::new("a secret")?)));
    let router = router(
        &database,
        TenantSecrets::new(names, everybody).separate_ids(),
    );
    for tenant in ["blank", "nul", "long", "none"] {
        let sent = request(tenant, "a secret", "a");
        assert_eq!(send(&router, sent).await, forged(), "{tenant}");
    }
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn a_lookup_that_fails_or_hangs_is_a_503() {
    let database = Database::new().await;
    // The lookup of secrets has the same time limit as Postgres.
    let impatient = |layer: IdempotentWebhook| layer.database_timeout(Duration::from_millis(500));
    let router = router_with(&database, Tenants::default().secrets(), impatient);
    for tenant in ["broken", "hanging"] {
        assert_eq!(
            soon(send(&router, request(tenant, "a secret", "a"))).await,
            answer(503, "failed", "temporarily unavailable"),
            "{tenant}"
        );
    }
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn what_was_looked_up_is_kept_for_a_time_and_a_rotated_secret_is_picked_up() {
    let database = Database::new().await;
    let tenants = Tenants::default();
    tenants.set("acme", "old");
    let router = router(
        &database,
        tenants.secrets().cache(10, Duration::from_secs(60)),
    );
    let status =
        async |secret: &str, id: &str| send(&router, request("acme", secret, id)).await.status;
    assert_eq!(status("old", "a").await, 200);
    assert_eq!(status("old", "b").await, 200);
    assert_eq!(tenants.looked_up(), ["acme"]);

    tenants.set("acme", "new");
    let_pass(Duration::from_secs(60)).await;
    assert_eq!(status("new", "c").await, 200);
    assert_eq!(status("old", "d").await, 401);
    assert_eq!(tenants.looked_up(), ["acme"]);
    assert_rows!(database, claims: 3, effects: 3);
}

#[tokio::test]
async fn made_up_tenants_do_not_push_real_ones_out_of_the_cache() {
    let database = Database::new().await;
    let tenants = Tenants::default();
    tenants.set("acme", "secret");
    let secrets = tenants.secrets().cache(2, Duration::from_secs(60));
    let router = router(&database, secrets);
    let send =
        async |tenant: &str, id: &str| send(&router, request(tenant, "secret", id)).await.status;
    assert_eq!(send("acme", "a").await, 200);
    for n in 0..5 {
        assert_eq!(send(&format!("made-up-{n}"), "x").await, 401);
    }
    assert_eq!(send("acme", "b").await, 200);
    let looked_up = tenants.looked_up();
    assert_eq!(looked_up.iter().filter(|name| *name == "acme").count(), 1);

    // A new tenant is found at once.
    tenants.set("made-up-0", "secret");
    assert_eq!(send("made-up-0", "c").await, 200);
}

#[tokio::test]
async fn the_tenant_is_part_of_the_key_if_asked_for() {
    for separate in [false, true] {
        let database = Database::new().await;
        let tenants = Tenants::default();
        tenants.set("acme", "secret");
        tenants.set("globex", "secret");
        let secrets = tenants.secrets();
        let secrets = if separate {
            secrets.separate_ids()
        } else {
            secrets
        };
        let router = router(&database, secrets);
        let first = send(&router, request("acme", "secret", "1")).await;
        assert_eq!(first.outcome, "processed");
        let second = send(&router, request("globex", "secret", "1")).await;
        let expected = if separate { "processed" } else { "duplicate" };
        assert_eq!(second.outcome, expected);
        let rows = 1 + i64::from(separate);
        assert_rows!(database, claims: rows, effects: rows);
        let again = send(&router, request("acme", "secret", "1")).await;
        assert_eq!(again.outcome, "duplicate");
    }
}

/// The signature does not cover the name of the tenant. If the lookup of tenants ignores case, all
/// spellings of a name are one tenant.
#[tokio::test]
async fn a_captured_request_under_another_spelling_of_the_tenant_is_a_duplicate() {
    let database = Database::new().await;
    let in_path = |head: &Parts| Some(head.uri.path().strip_prefix("/hooks/")?.to_owned());
    let ignoring_case = async |name: String| {
        let secrets = || {
            Ok::<_, idempotent_webhook::provider::SecretError>(Secrets::new(Secret::new("secret")?))
        };
        match &*name.to_lowercase() {
            "acme" => Ok(Some(ResolvedTenant::new("acme", secrets()?))),
            "unusable" => Ok(Some(ResolvedTenant::new("\0", secrets()?))),
            _ => Ok(None),
        }
    };
    let secrets = TenantSecrets::new(in_path, ignoring_case).separate_ids();
    let router = router(&database, secrets);
    for (spelling, outcome) in [
        ("Acme", "processed"),
        ("acme", "duplicate"),
        ("ACME", "duplicate"),
        ("aCMe", "duplicate"),
    ] {
        let answered = send(&router, request(spelling, "secret", "a")).await;
        assert_eq!(answered.outcome, outcome, "{spelling}");
    }
    let other = send(&router, request("ACME", "secret", "b")).await;
    assert_eq!(other, answer(200, "processed", "acme"));
    assert_eq!(
        send(&router, request("unusable", "secret", "c")).await,
        answer(503, "failed", "temporarily unavailable")
    );
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn the_tenant_is_read_from_the_uri_that_the_server_has_received() {
    let database = Database::new().await;
    let tenants = Tenants::default();
    tenants.set("acme", "acme's secret");
    let layer = IdempotentWebhook::new(
        database.pool.clone(),
        "test",
        presets::github(tenants.secrets()),
    );
    let hooks = Router::new().route("/{tenant}", post(handler).layer(layer));
    let router = Router::new().nest("/hooks", hooks);
    assert_eq!(
        send(&router, request("acme", "acme's secret", "a")).await,
        answer(200, "processed", "acme")
    );
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn g13_no_tenant_and_an_unknown_one_are_two_reasons() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(
        database.pool.clone(),
        "test",
        presets::github(Tenants::default().secrets()),
    );
    let router = Router::new().fallback_service(post(handler).layer(layer));
    let elsewhere = github_delivery().uri("/elsewhere").request();
    for (request, reason) in [
        (elsewhere, "found no tenant in the request"),
        (
            request("%20".repeat(100).as_str(), "a", "b"),
            "or one whose name is not usable",
        ),
        (request("nobody", "a", "c"), "does not know the tenant"),
    ] {
        let log = logged(async {
            assert_eq!(send(&router, request).await, forged());
        })
        .await;
        assert!(log.contains(reason), "{reason}: {log}");
    }
    assert_rows!(database, claims: 0, effects: 0);
}
