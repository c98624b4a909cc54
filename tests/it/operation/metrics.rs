//! The metrics, scraped over HTTP as Prometheus does it.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use idempotent_webhook::recovery::Rehearsal;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, IdempotentWebhook, Keep, LateClaim, Recovery, presets, prune,
};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::support::{
    Database, github, github_delivery, insert_due_of, insert_effect, let_pass, secret, send, soon,
    spawn_send,
};

/// The endpoint of the test that scrapes. No other test uses it, because the metrics count all tests of this process.
const ENDPOINT: &str = "metered";

struct Scraped(String);

impl Scraped {
    /// The value of a series. The labels must be in the order in which the crate writes them.
    fn value(&self, name: &str, further: &str) -> Option<f64> {
        let series = format!("{name}{{endpoint=\"{ENDPOINT}\",provider=\"github\"{further}}} ");
        let line = self.0.lines().find_map(|line| line.strip_prefix(&series))?;
        Some(line.parse().unwrap())
    }

    fn outcome(&self, outcome: &str) -> Option<f64> {
        let outcome = format!(",outcome=\"{outcome}\"");
        self.value("idempotent_webhook_deliveries_total", &outcome)
    }

    fn rejection(&self, reason: &str) -> Option<f64> {
        let reason = format!(",reason=\"{reason}\"");
        self.value("idempotent_webhook_rejections_total", &reason)
    }
}

fn unix_now() -> f64 {
    crate::support::now() as f64
}

#[tokio::test]
async fn what_happens_can_be_scraped_and_no_label_comes_from_a_sender() {
    let recorder = PrometheusBuilder::new().install_recorder().unwrap();
    let scrape = Router::new().route("/metrics", get(async move || recorder.render()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, scrape).await });
    let scrape = async || {
        let scraped = reqwest::get(&url).await.unwrap();
        Scraped(scraped.text().await.unwrap())
    };

    let before = unix_now();
    let database = Database::new().await;
    let (mut gate, gated) = crate::support::gated();
    let handler = async move |tx: DedupeTx, delivery: Delivery| match delivery.id().as_str() {
        "gated" => gated(tx, delivery).await,
        "fails" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => {
            let mut tx = tx;
            insert_effect(&mut tx, &delivery).await.unwrap();
            StatusCode::OK
        }
    };
    let github_provider = presets::github(secret()).body_limit(1000);
    let layer = IdempotentWebhook::new(database.pool.clone(), ENDPOINT, github_provider);
    let late = async |claim: LateClaim| claim.begin().await.map(|_| StatusCode::OK);
    let router = Router::new()
        .route("/", post(handler).layer(layer.clone()))
        .route("/late", post(late).layer(layer.clone().late_claim()))
        .route("/only", post(StatusCode::OK).layer(layer.only(["push"])));
    let outcome = async |request| send(&router, request).await.outcome;

    assert_eq!(outcome(github("id-of-a-sender", "{}")).await, "processed");
    assert_eq!(outcome(github("id-of-a-sender", "{}")).await, "duplicate");
    assert_eq!(outcome(github("fails", "{}")).await, "failed");
    let forged = github_delivery()
        .id("forged-by-a-sender")
        .body("text of a sender");
    assert_eq!(outcome(forged.tampered().request()).await, "rejected");
    let unsigned = github_delivery().id("a").unsigned();
    assert_eq!(outcome(unsigned.request()).await, "rejected");
    assert_eq!(outcome(github("a", "x".repeat(1001))).await, "rejected");

    let canary = TestDelivery::canary(&presets::github(secret())).unwrap();
    assert_eq!(outcome(canary.request()).await, "canary");

    let ignored = github_delivery().event_type("type of a sender");
    assert_eq!(outcome(ignored.uri("/only").request()).await, "ignored");

    let scraped = scrape().await;
    assert_eq!(scraped.outcome("processed"), Some(1.0));
    // Neither the outcomes nor the stages below count canaries.
    assert_eq!(scraped.outcome("canary"), None);
    assert_eq!(scraped.outcome("ignored"), Some(1.0));
    assert_eq!(scraped.outcome("duplicate"), Some(1.0));
    assert_eq!(scraped.outcome("failed"), Some(1.0));
    assert_eq!(scraped.outcome("rejected"), Some(3.0));
    for reason in ["no_match", "missing_header", "body_too_large"] {
        assert_eq!(scraped.rejection(reason), Some(1.0), "{reason}");
    }
    for (stage, count) in [("claim", 3.0), ("handler", 2.0), ("commit", 1.0)] {
        let name = format!("idempotent_webhook_{stage}_seconds_count");
        assert_eq!(scraped.value(&name, ""), Some(count), "{stage}");
    }
    let before_claim = "idempotent_webhook_before_claim_seconds_count";
    assert_eq!(scraped.value(before_claim, ""), None);
    let late = github_delivery().id("late").uri("/late");
    assert_eq!(outcome(late.request()).await, "processed");
    assert_eq!(scrape().await.value(before_claim, ""), Some(1.0));
    // The names of other tests' metrics contain the word `sender`, so longer texts are searched.
    for text in ["-a-sender", "of a sender"] {
        assert!(!scraped.0.contains(text), "{}", scraped.0);
    }

    // Copies of a delivery that is in flight wait.
    let waiters = async |expected: f64| {
        let name = "idempotent_webhook_in_flight_waiters";
        while scrape().await.value(name, "") != Some(expected) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let copies: Vec<_> = (0..4)
        .map(|_| spawn_send(&router, github("gated", "{}")))
        .collect();
    gate.reached().await;
    soon(waiters(3.0)).await;
    gate.open();
    for copy in copies {
        assert_eq!(copy.await.unwrap().status, 200);
    }
    soon(waiters(0.0)).await;
    let scraped = scrape().await;
    assert_eq!(scraped.outcome("duplicate"), Some(4.0));

    // The gauge shows the last authentic request, not the last request. A process that starts reads the requests of
    // other processes from the database.
    const LAST: &str = "idempotent_webhook_last_authentic_timestamp_seconds";
    let last = scraped.value(LAST, "").unwrap();
    assert!(last >= before && last <= unix_now(), "{last}");
    database
        .run(
            "insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             select 'metered-silent', to_timestamp(at - 60), source, outcome, 1, to_timestamp(at)
             from (values
                (1700000000, 'request', 'duplicate'),
                (1600000000, 'request', 'processed'),
                (1750000000, 'request', 'rejected'),
                (1750000000, 'recovery', 'processed')
             ) as counted (at, source, outcome)",
        )
        .await;
    let silent = |endpoint| {
        let provider = presets::github(secret());
        IdempotentWebhook::new(database.pool.clone(), endpoint, provider)
            .expect_every(Duration::from_secs(3600))
    };
    let _layers = ["metered-silent", "metered-never"].map(silent);
    let series = |name: &str, endpoint: &str| {
        format!("{name}{{endpoint=\"{endpoint}\",provider=\"github\"}} ")
    };
    let every = series(
        "idempotent_webhook_expected_every_seconds",
        "metered-silent",
    );
    soon(async {
        loop {
            let scraped = scrape().await.0;
            let has = |series: &str| scraped.contains(series);
            if has(&(series(LAST, "metered-silent") + "1700000000\n"))
                && has(&(every.clone() + "3600\n"))
                && has(&series(LAST, "metered-never"))
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;

    database
        .run("update idempotent_webhook.deliveries set received_at = now() - interval '9 days'")
        .await;
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    assert_eq!(prune(&database.pool, week).await.unwrap().deliveries, 3);
    let name = "idempotent_webhook_pruned_rows_total{table=\"deliveries\"} ";
    let scraped = scrape().await;
    let pruned = scraped.0.lines().find_map(|line| line.strip_prefix(name));
    assert!(pruned.unwrap().parse::<u64>().unwrap() >= 2);

    // For how long the oldest delivery that recovery has not run has been due.
    let kept = IdempotentWebhook::new(
        database.pool.clone(),
        "metered-kept",
        presets::github(secret()),
    );
    let recovery = Recovery::new(database.pool.clone());
    let kept = kept.keep(Keep::failed(&recovery));
    let kept = Router::new().route("/", post(StatusCode::OK).layer(kept));
    let endpoint = Endpoint::new(database.pool.clone(), "metered-kept");
    endpoint.pause().await.unwrap();
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('metered-kept', 'a', 'due', 1, now() - interval '1 minute');
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('metered-kept', 'a', 1, 'POST', '/', '', '')",
        )
        .await;
    let running = recovery.clone().spawn(kept.clone());
    let name = "idempotent_webhook_oldest_due_seconds{endpoint=\"metered-kept\"} ";
    let oldest_due = async || {
        let scraped = scrape().await;
        let line = scraped.0.lines().find_map(|line| line.strip_prefix(name));
        line.map(|seconds| seconds.parse::<f64>().unwrap())
    };
    soon(async {
        while oldest_due().await.is_none_or(|seconds| seconds < 60.0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    running.stop().await;

    // The attempt reaches no layer, although the endpoint's layer exists.
    endpoint.resume().await.unwrap();
    let running = recovery.spawn(Router::<()>::new());
    let name = "idempotent_webhook_recovery_attempts_total\
                {endpoint=\"metered-kept\",provider=\"github\",outcome=\"unhandled\"} 1";
    soon(async {
        while !scrape().await.0.contains(name) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    running.stop().await;
    drop(kept);

    // No metric counts a rehearsal. Only the counters that are initialized at the start appear.
    let recovery = Recovery::new(database.pool.clone());
    let rehearsed = |endpoint| {
        let provider = presets::github(secret());
        IdempotentWebhook::new(database.pool.clone(), endpoint, provider)
            .keep(Keep::all(&recovery))
            .rehearsable()
    };
    let early = post(async |_: DedupeTx| {}).layer(rehearsed("rehearsed-early"));
    let late = post(async |claim: LateClaim| claim.begin().await.map(|_| StatusCode::OK))
        .layer(rehearsed("rehearsed-late").late_claim());
    let router = Router::new().route("/early", early).route("/late", late);
    insert_due_of(&database, "rehearsed-early", "/early", 1).await;
    insert_due_of(&database, "rehearsed-late", "/late", 1).await;
    let of_rehearsed = async || {
        let scraped = scrape().await.0;
        let of_it = scraped.lines().filter(|line| line.contains("rehearsed-"));
        of_it.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let before = of_rehearsed().await;
    let report = recovery.rehearse(&router, &Rehearsal::new()).await.unwrap();
    assert_eq!(report.rehearsed(), 2);
    assert_eq!(of_rehearsed().await, before);
    server.abort();
}

#[tokio::test]
async fn deploy_1_a_gauge_says_whether_the_database_is_of_another_environment() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    // The recorder is set for this thread, which is the only thread of the test's runtime.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let name = &database.name;
    for (environment, value) in [("production", 0), ("staging", 1), ("production", 0)] {
        let recovery = Recovery::new(database.pool.clone()).environment(environment);
        let running = recovery.spawn(Router::<()>::new());
        let series = format!("idempotent_webhook_other_environment{{database=\"{name}\"}} {value}");
        soon(async {
            while !exporter.render().contains(&series) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        running.stop().await;
    }
}

/// The metrics in the guide's alerts, each with the labels that the alert selects.
fn alerts() -> BTreeSet<(&'static str, &'static str)> {
    const RULES: &str = include_str!("../../../src/documentation/prometheus_rules.yml");
    let alerts = RULES.split("- alert: ").skip(1);
    let metrics = alerts.flat_map(|alert| {
        alert
            .match_indices("idempotent_webhook_")
            .map(|(at, _)| &alert[at..])
    });
    metrics
        .map(|metric| {
            let end = metric
                .find(|c: char| !c.is_ascii_lowercase() && c != '_')
                .unwrap();
            let (name, rest) = metric.split_at(end);
            let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            (name, labels.map_or("", |(labels, _)| labels))
        })
        // A pattern of several outcomes is not a series.
        .filter(|(_, label)| !label.contains('~'))
        .collect()
}

/// The value of the series that an alert reads for an endpoint.
fn alerted(rendered: &str, endpoint: &str, (name, label): (&str, &str)) -> Option<f64> {
    let endpoint = format!("endpoint=\"{endpoint}\"");
    let line = rendered.lines().find(|line| {
        line.strip_prefix(name)
            .is_some_and(|line| line.starts_with('{'))
            && line.contains(&endpoint)
            && line.contains(label)
    })?;
    Some(line.rsplit_once(' ')?.1.parse().unwrap())
}

/// Prometheus sees a counter only once it is exported, and `increase` does not count the first value. A counter that
/// first appears with a value of 1 would be missed.
#[tokio::test]
async fn the_alerts_see_the_first_event_of_a_process() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    // The recorder is set for this thread, which is the only thread of the test's runtime.
    let _guard = metrics::set_default_local_recorder(&recorder);

    let database = Database::new().await;
    let endpoint = |name: &'static str| {
        IdempotentWebhook::new(database.pool.clone(), name, presets::github(secret()))
    };
    let fails = post(async |_: DedupeTx| StatusCode::INTERNAL_SERVER_ERROR);
    let loses = endpoint("loses");
    let recovery = Recovery::new(database.pool.clone());
    let buries = endpoint("buries").keep(Keep::failed(&recovery).retry_delays([]));
    let router = Router::new()
        .route("/loses", fails.clone().layer(loses))
        .route("/buries", fails.layer(buries));
    assert_eq!(
        alerted(
            &exporter.render(),
            "buries",
            ("idempotent_webhook_oldest_due_seconds", "")
        ),
        None,
        "`absent` must show that no process runs recovery"
    );
    let oldest_due = ("idempotent_webhook_oldest_due_seconds", "");
    let waiting = ("idempotent_webhook_failing_deliveries", "state=\"dead\"");
    // Runs recovery until it has set a gauge of the endpoint `buries` to this value.
    let told = async |gauge: (&str, &str), value: f64| {
        let running = recovery.clone().spawn(router.clone());
        soon(async {
            while alerted(&exporter.render(), "buries", gauge) != Some(value) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        running.stop().await;
    };
    told(oldest_due, 0.0).await;
    told(waiting, 0.0).await;

    let before = exporter.render();
    assert_eq!(alerts().len(), 22);
    // Metrics in the alerts that this endpoint does not have.
    let of_others = [
        // This gauge belongs to the database, not to an endpoint.
        ("idempotent_webhook_other_environment", ""),
        ("idempotent_webhook_unserved_deliveries", ""),
        ("idempotent_webhook_subscription_differences", ""),
        ("idempotent_webhook_last_authentic_timestamp_seconds", ""),
        ("idempotent_webhook_expected_every_seconds", ""),
        // These two gauges need a table of types.
        ("idempotent_webhook_event_types", "state=\"new\""),
        ("idempotent_webhook_event_types", "state=\"stopped\""),
        // This counter needs an expected version.
        ("idempotent_webhook_other_version_total", ""),
        // A histogram for providers that sign a time.
        ("idempotent_webhook_sender_wait_seconds_bucket", ""),
        // These counters need tenants.
        ("idempotent_webhook_tenant_requests_total", ""),
        (
            "idempotent_webhook_tenant_requests_total",
            "result=\"rejected\"",
        ),
    ];
    for alert in alerts() {
        let expected = match alert.0 {
            // GitHub's deadline for an answer is 10 seconds.
            "idempotent_webhook_response_deadline_seconds" => Some(10.0),
            _ => (!of_others.contains(&alert)).then_some(0.0),
        };
        assert_eq!(
            alerted(&before, "buries", alert),
            expected,
            "{alert:?}: {before}"
        );
    }
    let deliver = async |uri: &str| {
        let delivery = github_delivery().id("a").uri(uri);
        send(&router, delivery.request()).await.outcome
    };
    assert_eq!(deliver("/loses").await, "failed");
    assert_eq!(deliver("/buries").await, "kept");
    let after = exporter.render();
    let failed = ("idempotent_webhook_deliveries_total", "outcome=\"failed\"");
    assert!(alerts().contains(&failed) && alerts().contains(&waiting));
    let dead = ("idempotent_webhook_dead_total", "");
    for (endpoint, counter) in [("loses", failed), ("buries", dead)] {
        assert_eq!(alerted(&before, endpoint, counter), Some(0.0), "{before}");
        assert_eq!(alerted(&after, endpoint, counter), Some(1.0), "{after}");
    }
    // The delivery waits for an operator, and the gauge shows that for as long as the wait takes.
    told(waiting, 1.0).await;
    Endpoint::new(database.pool.clone(), "buries")
        .discard("a")
        .await
        .unwrap();
    told(waiting, 0.0).await;
}

/// The lists in the documentation are the same as in the crate.
#[tokio::test]
async fn each_counter_of_the_documentation_starts_at_zero() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "new", presets::github(secret()));
    let rendered = exporter.render();

    let documented = include_str!("../../../src/lib.rs");
    let row = |name: &str| {
        let row = documented
            .lines()
            .find(|line| line.contains(&format!("| `{name}` |")));
        let listed = row.unwrap().split_once("`: ").unwrap().1;
        listed.split('`').skip(1).step_by(2)
    };
    let (deliveries, rejections) = (
        "idempotent_webhook_deliveries_total",
        "idempotent_webhook_rejections_total",
    );
    let mut series = 0;
    for (name, label) in [(deliveries, "outcome"), (rejections, "reason")] {
        for value in row(name) {
            let label = format!("{label}=\"{value}\"");
            assert_eq!(
                alerted(&rendered, "new", (name, &label)),
                Some(0.0),
                "{label}"
            );
            series += 1;
        }
    }
    let exported = |name: &str| rendered.matches(&format!("\n{name}{{")).count();
    assert_eq!(exported(deliveries) + exported(rejections), series);
    drop(layer);
}

/// A request counts as received even if the process that received it is gone.
#[tokio::test]
async fn q4_a_request_of_another_process_is_no_silence() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let mut layer = None;
    let requests = [1_800_000_000_u64, 1_900_000_000, 2_000_000_000];
    for at in requests {
        database
            .run(&format!(
                "insert into idempotent_webhook.activity
                     (endpoint, hour, source, outcome, count, last_at)
                 select 'seen', date_trunc('hour', at, 'UTC'), 'request', 'processed', 1, at
                 from to_timestamp({at}) as at"
            ))
            .await;
        if layer.is_none() {
            let provider = presets::github(secret());
            let seen = IdempotentWebhook::new(database.pool.clone(), "seen", provider);
            layer = Some(seen.expect_every(Duration::from_secs(3600)));
        } else {
            let_pass(Duration::from_secs(31)).await;
        }
        let seen = format!(
            "idempotent_webhook_last_authentic_timestamp_seconds\
             {{endpoint=\"seen\",provider=\"github\"}} {at}\n"
        );
        soon(async {
            while !exporter.render().contains(&seen) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

/// No recovery looks for problems of this endpoint.
#[tokio::test]
async fn y1_the_metric_has_the_types_of_an_endpoint_that_keeps_nothing() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    database
        .run(
            r#"insert into idempotent_webhook.endpoint_settings (endpoint, settings, ignores_since, names_since, told_at)
             values (
                 'typed', '{"event_types": ["push", "fork"], "ignores_other_events": true}',
                 now() - interval '9 days', now() - interval '9 days', now()
             );
             insert into idempotent_webhook.event_types (endpoint, event_type, first_at, last_at, days, is_handled, clock)
             values ('typed', 'push', now() - interval '9 days', now() - interval '2 days', 7, true, 100),
                 ('typed', 'fork', now() - interval '9 days', now(), 7, true, 200),
                 ('typed', 'star', now(), now(), 1, false, 0), ('typed', 'watch', now(), now(), 1, false, 0)"#,
        )
        .await;
    let provider = presets::github(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "typed", provider).only(["push"]);
    let gauge = |state: &str, count: u32| {
        format!(
            "idempotent_webhook_event_types\
             {{endpoint=\"typed\",provider=\"github\",state=\"{state}\"}} {count}\n"
        )
    };
    // Lets the task start its wait.
    tokio::task::yield_now().await;
    for (new, stopped) in [(2, 1), (1, 0)] {
        let_pass(Duration::from_secs(31)).await;
        soon(async {
            loop {
                let rendered = exporter.render();
                if [gauge("new", new), gauge("stopped", stopped)]
                    .iter()
                    .all(|line| rendered.contains(line))
                {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        database
            .run(
                "update idempotent_webhook.event_types set clock = 200 where event_type = 'push';
                 delete from idempotent_webhook.event_types where event_type = 'star'",
            )
            .await;
    }
    drop(layer);
}
