//! Requests and attempts, counted by hour and outcome.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::header::HeaderValue;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use idempotent_webhook::provider::signature::Tolerance;
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Retention, Secret, presets};
use sqlx::PgPool;

use crate::support::{
    Database, Failing, NOTHING_KEPT, SECRET, TestApp, github, github_delivery, let_pass, logged,
    recover, recovery, secret, send, soon, write_effect,
};

type Counted = Vec<(String, String, i64)>;

async fn counted(database: &Database) -> Counted {
    sqlx::query_as(
        "select source, outcome, sum(count)::int8
         from idempotent_webhook.activity
         where endpoint = 'test' and source <> 'handler'
         group by source, outcome
         order by source, outcome",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// Waits until this number of requests and attempts is counted.
async fn until_counted(database: &Database, count: u32) {
    database
        .until(&format!(
            "(select sum(count) from idempotent_webhook.activity where source <> 'handler') = {count}"
        ))
        .await;
}

/// The counted calls of the handler, by duration bucket.
async fn handled(database: &Database) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select outcome, count from idempotent_webhook.activity
         where endpoint = 'test' and source = 'handler'",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// The counted rejections by cause, each with the last reason.
async fn rejected(database: &Database) -> Counted {
    sqlx::query_as(
        "select cause, reason, count from idempotent_webhook.rejections
         where endpoint = 'test'
         order by cause",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// The version and the settings that were reported last.
async fn told(database: &Database) -> Option<(String, serde_json::Value)> {
    let told: Option<(String, String)> = sqlx::query_as(
        "select version, settings::text from idempotent_webhook.endpoint_settings
         where endpoint = 'test'",
    )
    .fetch_optional(&database.pool)
    .await
    .unwrap();
    told.map(|(version, settings)| (version, settings.parse().unwrap()))
}

fn layer_of(pool: &PgPool) -> IdempotentWebhook {
    IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
}

fn route<H, T>(layer: &IdempotentWebhook, handler: H) -> Router
where
    H: Handler<T, ()>,
    T: 'static,
{
    Router::new().route("/", post(handler).layer(layer.clone()))
}

fn expected(counted: &[(&str, &str, i64)]) -> Counted {
    counted
        .iter()
        .map(|(source, outcome, count)| ((*source).into(), (*outcome).into(), *count))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_outcome_within_seconds() {
    let app = TestApp::github(write_effect).await;
    for id in ["a", "a", "b"] {
        app.send(github(id, "{}")).await;
    }
    let forged = github_delivery().tampered();
    assert_eq!(app.send(forged.request()).await.status, 401);
    until_counted(&app.database, 4).await;
    let first = [
        ("request", "duplicate", 1),
        ("request", "processed", 2),
        ("request", "rejected", 1),
    ];
    assert_eq!(counted(&app.database).await, expected(&first));
    app.database
        .until(
            "not exists (
                select from idempotent_webhook.activity
                where hour <> date_trunc('hour', now(), 'UTC') or now() - last_at > '1 min'
            )",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_of_recovery_are_counted_apart() {
    let failing = Failing::times(2);
    let app = TestApp::keeping(|keep| keep, failing.handler()).await;
    app.send(github("a", "{}")).await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    until_counted(&app.database, 3).await;
    let all = [
        ("recovery", "kept", 1),
        ("recovery", "processed", 1),
        ("request", "kept", 1),
    ];
    assert_eq!(counted(&app.database).await, expected(&all));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_deliveries_are_counted() {
    let failing = Failing::times(100);
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, failing.handler()).await;
    app.send(github("a", "{}")).await;
    until_counted(&app.database, 2).await;
    let all = [("recovery", "dead", 1), ("request", "kept", 1)];
    assert_eq!(counted(&app.database).await, expected(&all));
}

/// A process that shuts down properly loses no counts.
#[tokio::test]
async fn what_is_counted_is_written_when_the_layer_is_drained() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    send(&router, github("a", "{}")).await;
    layer.drained().await;
    let one = [("request", "processed", 1)];
    assert_eq!(counted(&database).await, expected(&one));
    // The second call does not write the counts again.
    layer.drained().await;
    assert_eq!(counted(&database).await, expected(&one));
}

#[tokio::test]
async fn two_processes_add_to_one_count() {
    let app = TestApp::github(write_effect).await;
    let layers = [
        app.database.another_pool(2).await,
        app.database.another_pool(2).await,
    ]
    .map(|pool| IdempotentWebhook::new(pool, "test", presets::github(secret())));
    for (number, layer) in layers.iter().enumerate() {
        let handler = axum::routing::post(write_effect).layer(layer.clone());
        let router = axum::Router::new().route("/", handler);
        send(&router, github(&number.to_string(), "{}")).await;
    }
    let [one, other] = layers;
    tokio::join!(one.drained(), other.drained());
    let both = [("request", "processed", 2)];
    assert_eq!(counted(&app.database).await, expected(&both));
}

/// If any of the tables cannot be written, all counts are written later.
#[tokio::test]
async fn what_cannot_be_written_is_written_later() {
    for table in ["activity", "rejections", "endpoint_settings"] {
        let database = Database::new().await;
        let layer = layer_of(&database.pool);
        let router = route(&layer, write_effect);
        database
            .run(&format!(
                "alter table idempotent_webhook.{table} rename to away"
            ))
            .await;
        send(&router, github("a", "{}")).await;
        send(&router, github_delivery().tampered().request()).await;
        let log = logged(layer.drained()).await;
        assert!(log.contains("could not write the activity"), "{log}");
        database
            .run(&format!(
                "alter table idempotent_webhook.away rename to {table}"
            ))
            .await;
        assert_eq!(counted(&database).await, []);
        assert_eq!(rejected(&database).await, []);
        assert_eq!(told(&database).await, None);

        send(&router, github("b", "{}")).await;
        layer.drained().await;
        let all = [("request", "processed", 2), ("request", "rejected", 1)];
        assert_eq!(counted(&database).await, expected(&all), "{table}");
        let rejected = rejected(&database).await;
        assert!(
            matches!(&*rejected, [(cause, _, 1)] if cause == "no_match"),
            "{table}: {rejected:?}"
        );
        let handled = handled(&database).await;
        let handled: i64 = handled.iter().map(|(_, count)| count).sum();
        assert_eq!(handled, 2, "{table}");
        assert!(told(&database).await.is_some(), "{table}");
    }
}

#[tokio::test]
async fn counting_can_be_switched_off() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .without_activity();
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    send(&router, github("a", "{}")).await;
    send(&router, github_delivery().tampered().request()).await;
    layer.drained().await;
    assert_eq!(counted(&database).await, []);
    assert_eq!(handled(&database).await, []);
    assert_eq!(rejected(&database).await, []);
    assert_eq!(told(&database).await, None);
}

/// The task that writes counts must not keep the pool open.
#[tokio::test]
async fn a_closed_pool_ends_the_writer() {
    let database = Database::new().await;
    let pool = database.another_pool(2).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let handler = axum::routing::post(write_effect).layer(layer);
    let router = axum::Router::new().route("/", handler);
    send(&router, github("a", "{}")).await;
    soon(pool.close()).await;
    let log = logged(tokio::time::sleep(Duration::from_secs(6))).await;
    assert!(!log.contains("activity"), "{log}");
}

#[tokio::test]
async fn retention_deletes_old_activity_and_remembers_before_when_deliveries_are_deleted() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.activity
                (endpoint, hour, source, outcome, count, last_at)
             select 'test', date_trunc('hour', now() - age, 'UTC'), 'request', 'processed', 1, now()
             from unnest(array[interval '1 hour', interval '44 days', interval '46 days']) as age;
             insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             select endpoint, age, now() - age
             from unnest(array['test', 'waits']) as endpoint,
                 unnest(array[interval '44 days', interval '46 days']) as age;
             insert into idempotent_webhook.rejections (endpoint, hour, cause, count, last_at, reason)
             select 'test', date_trunc('hour', now() - age, 'UTC'), 'no_match', 1, now(), ''
             from unnest(array[interval '44 days', interval '46 days']) as age;
             insert into idempotent_webhook.endpoint_settings (endpoint, settings, told_at)
             values
                ('test', '{}', now() - interval '44 days'),
                ('left', '{}', now() - interval '46 days');
             insert into idempotent_webhook.event_types (endpoint, event_type, last_at)
             select 'test', age, now() - age
             from unnest(array[interval '300 days', interval '400 days']) as age;
             insert into idempotent_webhook.operator_actions (action, endpoint, began_at)
             select 'retry', 'test', now() - age
             from unnest(array[interval '40 days', interval '300 days', interval '400 days']) as age;
             insert into idempotent_webhook.operator_action_deliveries
             select id, 'test', '', number::text
             from idempotent_webhook.operator_actions, generate_series(1, 2) as number",
        )
        .await;
    // Retention deletes nothing yet for the endpoint `waits`, because its deliveries may be sent
    // again for longer.
    database.has_window("test", "1 day").await;
    database.has_window("waits", "50 days").await;
    let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
    let retention = Retention::new(database.pool.clone(), days(45)).every(Duration::ZERO);
    let task = retention.spawn();
    database
        .until(
            "exists (
                select from idempotent_webhook.pruned
                where endpoint = 'test' and before between now() - interval '45 days 1 min' and now() - interval '45 days'
            )",
        )
        .await;
    database
        .until("(select count(*) from idempotent_webhook.operator_actions) = 2")
        .await;
    task.stop().await;
    let two = [("request", "processed", 2)];
    assert_eq!(counted(&database).await, expected(&two));
    database
        .until(
            "(select count(*) from idempotent_webhook.rejections) = 1
             and (select array_agg(endpoint) from idempotent_webhook.endpoint_settings) = '{test}'
             and (select array_agg(event_type) from idempotent_webhook.event_types) = array['300 days']
             -- The deliveries of the action that is 40 days old.
             and (select count(*) from idempotent_webhook.operator_action_deliveries) = 2",
        )
        .await;
    // There is one row for each endpoint whose deliveries were deleted. The row keeps the later of
    // two times.
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             values ('test', 'old', now() - interval '61 days')",
        )
        .await;
    let pruned = idempotent_webhook::prune(&database.pool, days(60))
        .await
        .unwrap();
    assert_eq!(pruned.deliveries, 1);
    database
        .until(
            "(select count(*) from idempotent_webhook.pruned) = 1
             and (select before from idempotent_webhook.pruned) > now() - interval '46 days'",
        )
        .await;
}

/// The time limit applies regardless of the order in which the layer's settings are made.
#[tokio::test]
async fn what_is_counted_is_written_within_the_layers_time_for_the_database() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .database_timeout(Duration::from_millis(50));
    let handler = axum::routing::post(write_effect).layer(layer.clone());
    let router = axum::Router::new().route("/", handler);
    let forged = github_delivery().tampered();
    send(&router, forged.request()).await;

    let taken = pool.acquire().await.unwrap();
    let free_later = async {
        tokio::time::sleep(Duration::from_millis(1000)).await;
        drop(taken);
    };
    let log = logged(async {
        tokio::join!(layer.drained(), free_later);
    })
    .await;
    assert!(
        log.contains("all 1 connections of the pool are in use"),
        "{log}"
    );
    assert_eq!(counted(&database).await, []);
    layer.drained().await;
    assert_eq!(
        counted(&database).await,
        expected(&[("request", "rejected", 1)])
    );
}

#[tokio::test]
async fn handlers_are_counted_by_the_time_that_they_took() {
    let database = Database::new().await;
    let layer = layer_of(&database.pool);
    let slow = async |_: DedupeTx| {
        tokio::time::sleep(Duration::from_millis(30)).await;
        StatusCode::OK
    };
    let router = route(&layer, slow);
    // The handler does not see the second request.
    for _ in 0..2 {
        send(&router, github("a", "{}")).await;
    }
    layer.drained().await;
    let handled = handled(&database).await;
    let [(bucket, 1)] = &*handled else {
        panic!("not one call in one bucket: {handled:?}");
    };
    let longest: f64 = bucket.parse().unwrap();
    assert!(longest >= 50.0, "{bucket}");
}

#[tokio::test]
async fn handlers_that_time_out_or_panic_are_counted_by_their_time_too() {
    let database = Database::new().await;
    let layer = layer_of(&database.pool).handler_timeout(Duration::from_millis(20));
    let hanging = async |_: DedupeTx| -> StatusCode { std::future::pending().await };
    send(&route(&layer, hanging), github("a", "{}")).await;
    layer.drained().await;
    assert_eq!(handled(&database).await, [("20".to_owned(), 1)]);

    let panicking = async |_: DedupeTx| -> StatusCode { panic!("on purpose") };
    send(&route(&layer, panicking), github("b", "{}")).await;
    layer.drained().await;
    let handled = handled(&database).await;
    let handled: i64 = handled.iter().map(|(_, count)| count).sum();
    assert_eq!(handled, 2);
}

#[tokio::test]
async fn versions_are_counted_apart() {
    let database = Database::new().await;
    let layers = [
        layer_of(&database.pool),
        layer_of(&database.pool).version("1.4.0"),
        layer_of(&database.pool).version("1.5.0"),
        layer_of(&database.pool).version("1.5.0"),
    ];
    for (number, layer) in layers.iter().enumerate() {
        let router = route(layer, write_effect);
        send(&router, github(&number.to_string(), "{}")).await;
        layer.drained().await;
    }
    let by_version: Vec<(String, String, i64)> = sqlx::query_as(
        "select version, outcome, count from idempotent_webhook.activity
         where source = 'request'
         order by version",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let apart = [
        ("", "processed", 1),
        ("1.4.0", "processed", 1),
        ("1.5.0", "processed", 2),
    ];
    assert_eq!(by_version, expected(&apart));
}

#[tokio::test]
async fn a_version_that_is_not_usable_is_refused_at_start() {
    let database = Database::new().await;
    let is_refused = |version: &str| {
        let layer = layer_of(&database.pool);
        let set = std::panic::AssertUnwindSafe(|| drop(layer.version(version)));
        std::panic::catch_unwind(set).is_err()
    };
    for version in ["", " ", "1.4.0\n", "\0", &"1".repeat(65)] {
        assert!(is_refused(version), "{version:?}");
    }
    for version in ["1.4.0", &"1".repeat(64)] {
        assert!(!is_refused(version), "{version:?}");
    }
}

/// A GitHub delivery with this id, or without one.
fn with_id(id: Option<&'static str>) -> Request<Body> {
    let mut request: Request<Body> = github_delivery().request();
    let headers = request.headers_mut();
    headers.remove("x-github-delivery");
    if let Some(id) = id {
        headers.insert("x-github-delivery", HeaderValue::from_static(id));
    }
    request
}

#[tokio::test]
async fn rejected_requests_are_counted_by_cause_with_the_last_reason() {
    let database = Database::new().await;
    let layer = layer_of(&database.pool);
    let router = route(&layer, write_effect);
    let log = logged(async {
        for request in [
            github_delivery().tampered().request(),
            github_delivery().unsigned().request(),
            with_id(None),
            with_id(Some(" ")),
        ] {
            let status = send(&router, request).await.status;
            assert!([400, 401].contains(&status), "{status}");
        }
    })
    .await;
    // The second time, there is nothing to write.
    for _ in 0..2 {
        layer.drained().await;
        let rejected = rejected(&database).await;
        let reasons: Vec<_> = rejected.iter().map(|(_, reason, _)| reason).collect();
        for reason in &reasons {
            assert!(log.contains(*reason), "{reason}: {log}");
        }
        assert!(
            reasons[1].starts_with("signature matches none"),
            "{reasons:?}"
        );
        let all = [
            ("missing_header", "header x-hub-signature-256 is missing", 1),
            ("no_match", reasons[1], 1),
            (
                "no_usable_id",
                "no usable delivery id: header x-github-delivery is blank",
                2,
            ),
        ];
        assert_eq!(rejected, expected(&all));
    }

    let elsewhere = layer_of(&database.another_pool(2).await);
    let router = route(&elsewhere, write_effect);
    send(&router, github_delivery().tampered().request()).await;
    send(&router, with_id(None)).await;
    elsewhere.drained().await;
    let rejected = rejected(&database).await;
    let counts: Vec<_> = rejected.iter().map(|(_, _, count)| *count).collect();
    assert_eq!(counts, [1, 2, 3]);
    assert_eq!(
        rejected[2].1,
        "no usable delivery id: header x-github-delivery is missing"
    );
    let total = [("request", "rejected", 6)];
    assert_eq!(counted(&database).await, expected(&total));
}

/// All rows of all tables.
async fn everything_stored(database: &Database) -> String {
    let tables: Vec<String> = sqlx::query_scalar(
        "select format('%I.%I', schemaname, tablename) from pg_tables
         where schemaname = 'idempotent_webhook'",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let mut everything = String::new();
    for table in tables {
        let rows = format!("select coalesce(string_agg(t::text, ''), '') from {table} as t");
        let rows: String = sqlx::query_scalar(sqlx::AssertSqlSafe(rows))
            .fetch_one(&database.pool)
            .await
            .unwrap();
        everything += &rows;
    }
    everything
}

const CHOSEN: &str = "chosen-by-the-sender";
const NUMBER: &str = "4815162342";

/// A request with this text in each place that a sender can choose, including the names of headers.
fn forged() -> Request<Body> {
    let mut request = Request::post(format!("/{CHOSEN}?{CHOSEN}={CHOSEN}"));
    for name in [
        "x-hub-signature-256",
        "x-github-delivery",
        "x-github-event",
        "stripe-signature",
        "x-contentful-signature",
        "authorization",
    ] {
        request = request.header(name, format!("sha256={CHOSEN},t=1,v1={CHOSEN}"));
    }
    request
        .header("x-contentful-timestamp", "1700000000000")
        // The name of a header that is sent twice.
        .header("x-contentful-signed-headers", CHOSEN)
        .header(CHOSEN, CHOSEN)
        .header(CHOSEN, CHOSEN)
        // DocuSign's signature headers are numbered, and this one has no valid text.
        .header(
            format!("x-docusign-signature-{NUMBER}"),
            HeaderValue::from_bytes(b"\xff").unwrap(),
        )
        .body(Body::from(format!(r#"{{"id":"{CHOSEN}","{CHOSEN}":1}}"#)))
        .unwrap()
}

#[tokio::test]
async fn g1_nothing_of_a_forged_request_is_stored() {
    let database = Database::new().await;
    let pool = &database.pool;
    let contentful_secret = Secret::new("a".repeat(64)).unwrap();
    let router = |layer: &IdempotentWebhook| {
        Router::new().route("/{*path}", post(write_effect).layer(layer.clone()))
    };
    let log = logged(async {
        for (provider, status) in [
            (presets::github(secret()), 401),
            (presets::stripe(secret()), 401),
            (presets::telegram(secret()), 401),
            (presets::contentful(contentful_secret), 503),
            (presets::docusign(secret()), 401),
        ] {
            let layer = IdempotentWebhook::new(pool.clone(), "test", provider);
            assert_eq!(send(&router(&layer), forged()).await.status, status);
            layer.drained().await;
        }
        // A server's error can quote what the sender said when it closed the connection.
        let layer = layer_of(pool);
        let broken = futures_util::stream::iter([Err::<&str, _>(std::io::Error::other(CHOSEN))]);
        let (head, _) = github_delivery()
            .uri(&format!("/{CHOSEN}"))
            .request::<Body>()
            .into_parts();
        let broken = Request::from_parts(head, Body::from_stream(broken));
        assert_eq!(send(&router(&layer), broken).await.status, 400);
        layer.drained().await;
    })
    .await;
    for logged in [
        format!("header {CHOSEN} is malformed"),
        format!("header x-docusign-signature-{NUMBER} is malformed"),
        format!("broke off: {CHOSEN}"),
    ] {
        assert!(log.contains(&logged), "{logged}: {log}");
    }
    let rejected = rejected(&database).await;
    let reasons: Vec<_> = rejected
        .iter()
        .map(|(cause, reason, _)| (&**cause, &**reason))
        .collect();
    assert!(
        reasons.contains(&("malformed_header", "a header is malformed")),
        "{reasons:?}"
    );
    assert!(
        reasons.contains(&("body_broken", "the body broke off")),
        "{reasons:?}"
    );
    let stored = everything_stored(&database).await;
    assert!(stored.contains("rejected"), "{stored}");
    for chosen in [CHOSEN, NUMBER] {
        assert!(!stored.contains(chosen), "{stored}");
    }
}

#[tokio::test]
async fn the_settings_of_the_finished_layer_are_told() {
    let seconds = Duration::from_secs;
    let database = Database::new().await;
    let recovery = recovery(&database.pool);
    let provider = presets::stripe(secret())
        .tolerance(Tolerance::past_only(seconds(600)))
        .redelivery_window(seconds(86400))
        .body_limit(1000);
    let keep = Keep::all(&recovery)
        .retry_delays([seconds(1), Duration::from_millis(2500)])
        .processed_for(seconds(3600))
        .acknowledge();
    let unfinished = IdempotentWebhook::new(database.pool.clone(), "test", provider)
        .keep(keep)
        .handler_timeout(seconds(1));
    let layer = unfinished
        .clone()
        .version("1.4.0")
        .body_timeout(Duration::from_millis(1500))
        .handler_timeout(seconds(12))
        .in_flight_timeout(seconds(7))
        .database_timeout(seconds(4))
        .expect_every(Duration::from_secs(86400))
        .retry_after(seconds(9))
        .only(["invoice.*"])
        .replay_guard();
    send(&route(&layer, write_effect), github_delivery().request()).await;
    unfinished.drained().await;
    let (version, settings) = told(&database).await.unwrap();
    assert_eq!(version, "1.4.0");
    assert_eq!(
        settings,
        serde_json::json!({
            "provider": "stripe",
            "switched_off_by_provider": "after several days of failures, at a time that Stripe announces by email",
            "redelivered_by_provider": true,
            "expected_versions": null,
            "version_is_signed": null,
            "signature_header": "stripe-signature",
            "tolerance_seconds": 600,
            "redelivery_window_seconds": 86400,
            "body_limit_bytes": 1000,
            "body_timeout_seconds": 1.5,
            "handler_timeout_seconds": 12,
            "in_flight_timeout_seconds": 7,
            "database_timeout_seconds": 4,
            "event_types": ["invoice.*"],
            "ignored_event_types": null,
            "ignores_other_events": true,
            "event_actions": false,
            "event_types_verified": true,
            "expected_every_seconds": 86400,
            "retry_after_seconds": 9,
            "replay_guard": true,
            "late_claim": false,
            "serialize_by": null,
            "keep": "all",
            "acknowledge": true,
            "kept_body_limit_bytes": null,
            "retry_delays_seconds": [1, 2.5],
            "processed_for_seconds": 3600,
        })
    );
    assert!(!everything_stored(&database).await.contains(SECRET));

    // After a deploy, a process runs another version.
    let pool = database.another_pool(2).await;
    let layer = layer_of(&pool).version("1.5.0");
    send(&route(&layer, write_effect), github("a", "{}")).await;
    layer.drained().await;
    let (version, settings) = told(&database).await.unwrap();
    assert_eq!(version, "1.5.0");
    for (name, value) in [
        ("provider", serde_json::json!("github")),
        ("switched_off_by_provider", "never".into()),
        ("redelivered_by_provider", false.into()),
        ("signature_header", "x-hub-signature-256".into()),
        ("replay_guard", false.into()),
        ("acknowledge", false.into()),
    ] {
        assert_eq!(settings[name], value, "{name}");
    }
    let settings = settings.as_object().unwrap();
    for name in [
        "tolerance_seconds",
        "keep",
        "retry_delays_seconds",
        "processed_for_seconds",
    ] {
        assert!(settings[name].is_null(), "{name}");
    }
}

#[tokio::test]
async fn the_settings_are_told_again_after_an_hour() {
    let database = Database::new().await;
    let layer = layer_of(&database.pool);
    let router = route(&layer, write_effect);
    let send_and_write = async |id: &str| {
        send(&router, github(id, "{}")).await;
        layer.drained().await;
    };
    send_and_write("a").await;
    assert!(told(&database).await.is_some());
    database
        .run("delete from idempotent_webhook.endpoint_settings")
        .await;
    send_and_write("b").await;
    assert_eq!(told(&database).await, None);
    let_pass(Duration::from_secs(60 * 60)).await;
    // Draining writes no settings if there are no counts to write.
    layer.drained().await;
    assert_eq!(told(&database).await, None);
    send_and_write("c").await;
    assert!(told(&database).await.is_some());
}
