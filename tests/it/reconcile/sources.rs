//! The lists of providers, read from their APIs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::post;
use idempotent_webhook::reconcile::{
    EventSource, GitHubDeliveries, Http, MissingDelivery, ReconcileError, Reconciled, StripeEvents,
};
use idempotent_webhook::{IdempotentWebhook, Keep, Provider, Reconcile, Recovery, Secret};
use provider_apis::{Api, Event, KEY, PROVIDERS, Refusal, preset, source, webhook};

use super::{DAY, MINUTE, effects, handle};
use crate::support::{Database, logged, now, recovery, send};

/// An application that receives the webhooks of a provider.
struct Application {
    database: Database,
    layer: IdempotentWebhook,
    router: Router,
    recovery: Recovery,
}

impl Application {
    async fn of(provider: &str) -> Self {
        Self::with(preset(provider)).await
    }

    async fn with(provider: Provider) -> Self {
        let database = Database::new().await;
        let recovery = recovery(&database.pool);
        let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider)
            .keep(Keep::failed(&recovery));
        Self {
            router: Router::new().route("/", post(handle).layer(layer.clone())),
            database,
            layer,
            recovery,
        }
    }

    fn reconcile<S: EventSource>(&self, source: S) -> Reconcile<S> {
        Reconcile::new(&self.layer, source, "/")
            .unwrap()
            .grace(MINUTE)
            .since(UNIX_EPOCH)
    }
}

/// Adds events of the last hours, ten seconds apart.
fn fill(api: &Api, events: u64) {
    for number in 1..=events {
        api.add(Event {
            number,
            time: now() - 100 - (events - number) * 10,
        });
    }
}

fn numbers(found: &[MissingDelivery], provider: &str) -> Vec<u64> {
    let number = |one: &MissingDelivery| {
        let id = one.id.as_str().strip_prefix(provider).unwrap();
        id.strip_prefix('-').unwrap().parse().unwrap()
    };
    let mut numbers: Vec<u64> = found.iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn n3_the_key_of_each_list_is_that_of_the_webhook() {
    for provider in PROVIDERS {
        let (api, address) = Api::start(provider).await;
        fill(&api, 450);
        let application = Application::of(provider).await;
        for number in [1, 7, 200, 450] {
            let event = Event {
                number,
                time: now(),
            };
            let answer = send(&application.router, webhook(provider, event).request()).await;
            assert_eq!(
                (answer.status, &*answer.outcome),
                (200, "processed"),
                "{provider}"
            );
        }
        let reconcile = application.reconcile(source(provider, address, KEY));
        let found = reconcile.dry_run().await.unwrap();
        let expected: Vec<u64> = (1..=450)
            .filter(|n| ![1, 7, 200, 450].contains(n))
            .collect();
        assert_eq!(numbers(&found, provider), expected, "{provider}");
        let pages = api.requests().len();
        assert!((3..=5).contains(&pages), "{provider}: {:?}", api.requests());
        assert!(
            found.iter().all(|one| one.event_type.is_some()),
            "{provider}"
        );
        assert!(api.take_redeliveries().is_empty());

        // A time in the middle of the events.
        let since = SystemTime::now() - Duration::from_secs(1095);
        let found = reconcile.since(since).dry_run().await.unwrap();
        assert_eq!(
            numbers(&found, provider),
            (351..450).collect::<Vec<_>>(),
            "{provider}"
        );
    }
}

/// The position of a list is stored under the list's name. A time that the list does not go back to
/// is a gap.
#[test]
fn n2_each_list_has_a_name_that_stays_and_says_how_far_it_goes_back() {
    let address = "127.0.0.1:9".parse().unwrap();
    for (provider, name, days) in [
        ("stripe", "stripe", Some(30)),
        (
            "github",
            "github /repos/octocat/hello-world/hooks/1/deliveries",
            Some(3),
        ),
        ("paddle", "paddle ntfset_1", Some(90)),
        ("workos", "workos", Some(30)),
        ("chargebee", "chargebee acme-test", None),
    ] {
        let list = source(provider, address, KEY);
        assert_eq!(list.name(), name);
        assert_eq!(list.goes_back(), days.map(|days| days * DAY), "{provider}");
    }
}

#[tokio::test]
async fn n1_what_is_listed_runs_and_github_is_asked_to_deliver_again() {
    for provider in PROVIDERS {
        let (api, address) = Api::start(provider).await;
        fill(&api, 3);
        let application = Application::of(provider).await;
        let reconcile = application.reconcile(source(provider, address, KEY));
        assert_eq!(reconcile.run_once().await.unwrap().missed, 3, "{provider}");
        let attempts = application
            .recovery
            .run_due(&application.router)
            .await
            .unwrap();
        let redeliveries = api.take_redeliveries();
        let expected = match provider {
            "github" => {
                assert_eq!(redeliveries, [3, 2, 1]);
                assert!(attempts.is_empty());
                for number in redeliveries {
                    let event = Event {
                        number,
                        time: now(),
                    };
                    let answer =
                        send(&application.router, webhook(provider, event).request()).await;
                    assert_eq!(answer.outcome, "processed");
                }
                [1, 2, 3].map(|n| format!("github-{n}"))
            }
            _ => [1, 2, 3].map(|n| format!("{provider}-{n}#")),
        };
        assert_eq!(effects(&application.database).await, expected);
        assert_eq!(reconcile.run_once().await.unwrap().missed, 0, "{provider}");
    }
}

/// In GitHub's list, a repeated attempt at a delivery has a later time and the same id.
#[tokio::test]
async fn n1_github_is_not_asked_for_what_it_is_just_delivering_again() {
    let (api, address) = Api::start("github").await;
    for time in [now() - 1000, now() - 500, now() - 10] {
        api.add(Event { number: 1, time });
    }
    for time in [now() - 1000, now() - 500] {
        api.add(Event { number: 2, time });
    }
    let application = Application::of("github").await;
    let reconcile = application.reconcile(source("github", address, KEY));
    let found = reconcile.dry_run().await.unwrap();
    assert_eq!(numbers(&found, "github"), [2]);
    assert_eq!(reconcile.run_once().await.unwrap().missed, 1);
    assert_eq!(api.take_redeliveries(), [2]);
}

#[tokio::test]
async fn n4_a_redelivery_that_github_refuses_is_left_out_and_one_that_it_limits_is_waited_for() {
    let (api, address) = Api::start("github").await;
    fill(&api, 4);
    api.pass();
    api.pass();
    api.refuse(Refusal::Unprocessable);
    api.refuse(Refusal::TooMany(Some(1)));
    let application = Application::of("github").await;
    let reconcile = application.reconcile(source("github", address, KEY));
    let round = reconcile.run_once().await.unwrap();
    assert_eq!((round.missed, round.unusable), (3, 1));
    assert_eq!(api.take_redeliveries(), [4, 2, 1]);
    application
        .database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where missed = 3 and failure like 'github-3: %422%'
            )",
        )
        .await;

    // A failure that may be temporary is tried again.
    api.pass();
    api.pass();
    api.refuse(Refusal::Broken);
    assert!(reconcile.run_once().await.is_err());
    assert_eq!(api.take_redeliveries(), [4]);
    // The delivery was counted as missing before, so the number stays the same.
    application
        .database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where missed = 3 and failure like '%/attempts was answered with 500%'
            )",
        )
        .await;
}

/// A delivery that is always rejected used to be requested, and counted as missed, forever.
#[tokio::test]
async fn n1_github_is_not_asked_for_ever_for_what_is_rejected_each_time() {
    let (api, address) = Api::start("github").await;
    let attempt = || {
        api.add(Event {
            number: 1,
            time: now() - 100,
        });
    };
    attempt();
    let application = Application::of("github").await;
    let database = &application.database;
    let reconcile = application.reconcile(source("github", address, KEY));
    for _ in 0..3 {
        assert_eq!(reconcile.run_once().await.unwrap().missed, 1);
        assert_eq!(api.take_redeliveries(), [1]);
        attempt();
    }
    database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations where missed = 1 and failure is null
            )",
        )
        .await;

    database
        .run("update idempotent_webhook.redelivery_requests set first_at = now() - interval '8 days'")
        .await;
    let round = reconcile.run_once().await.unwrap();
    assert_eq!((round.missed, round.unusable), (0, 1));
    assert!(api.take_redeliveries().is_empty());
    database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where missed = 1 and failure like 'github-1: its redelivery was requested for%'
            )",
        )
        .await;
}

/// GitHub asks clients to wait a second between two requests that change something.
#[tokio::test]
async fn n4_github_is_asked_with_a_pause_between_redeliveries() {
    let (api, address) = Api::start("github").await;
    fill(&api, 2);
    let application = Application::of("github").await;
    let http = Http::new().base(format!("http://{address}"));
    let deliveries =
        GitHubDeliveries::repository(Secret::new(KEY).unwrap(), "octocat/hello-world", 1);
    // This pause is longer than the test waits for anything.
    let deliveries = deliveries.http(http).redelivery_pause(MINUTE);
    let reconcile = application.reconcile(deliveries);
    let running = tokio::spawn(async move { reconcile.run_once().await });
    application
        .database
        .until("exists (select from idempotent_webhook.redelivery_requests)")
        .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(api.take_redeliveries(), [2]);
    running.abort();
}

#[tokio::test]
async fn n4_the_limits_of_an_api_are_waited_out() {
    for (provider, refusal) in [
        ("paddle", Refusal::TooMany(Some(1))),
        ("github", Refusal::Exhausted(now() + 1)),
    ] {
        let (api, address) = Api::start(provider).await;
        fill(&api, 3);
        api.refuse(refusal);
        let application = Application::of(provider).await;
        let reconcile = application.reconcile(source(provider, address, KEY));
        let round: Reconciled = reconcile.run_once().await.unwrap();
        assert_eq!(round.missed, 3, "{provider}");
        assert!(api.requests().len() >= 2);
    }
}

#[tokio::test]
async fn n4_errors_of_an_api_are_told_without_its_key() {
    let log = logged(async {
        for provider in PROVIDERS {
            let (api, address) = Api::start(provider).await;
            fill(&api, 3);
            let application = Application::of(provider).await;
            let reconcile = application.reconcile(source(provider, address, KEY));
            for (refusal, expected) in [
                (Refusal::Broken, "was answered with 500"),
                (Refusal::Html, "differs from the documentation, at line 1"),
                (Refusal::Echo, "was answered with 502"),
            ] {
                api.refuse(refusal);
                let error = reconcile.run_once().await.unwrap_err().to_string();
                assert!(error.contains(expected), "{provider}: {error}");
                let shows_key = error.contains(KEY) || error.contains("c2tfdGVzdF9vZl90aGVfYXBp");
                assert!(!shows_key, "{provider}: {error}");
            }
            drop(reconcile);
            let wrong = source(provider, address, "sk_wrong_key");
            let reconcile = application.reconcile(wrong);
            let error = reconcile.run_once().await.unwrap_err();
            assert!(matches!(error, ReconcileError::Source(_)));
            let text = format!("{error} {error:?} {reconcile:?}");
            assert!(text.contains("was answered with 401"), "{provider}: {text}");
            assert!(!text.contains("wrong_key"), "{provider}: {text}");
            drop(reconcile);
            let nowhere = source(provider, "127.0.0.1:9".parse().unwrap(), KEY);
            let error = application.reconcile(nowhere).dry_run().await.unwrap_err();
            assert!(error.to_string().contains("GET /"), "{provider}: {error}");
        }
    })
    .await;
    assert!(!log.contains(KEY) && !log.contains("wrong_key"), "{log}");
}

#[tokio::test]
async fn n3_stripe_events_of_another_api_version_are_not_run() {
    let (api, address) = Api::start("stripe").await;
    api.add(Event {
        number: 98,
        time: now() - 100,
    });
    api.add(Event {
        number: 99,
        time: now() - 100,
    });
    let application = Application::with(preset("stripe").expect_version("2024-06-20")).await;
    let http = Http::new().base(format!("http://{address}"));
    let events = || StripeEvents::new(Secret::new(KEY).unwrap(), ["invoice.*"]).http(http.clone());
    let reconcile = application.reconcile(events());
    let round = reconcile.run_once().await.unwrap();
    assert_eq!((round.missed, round.unusable), (1, 1));
    let found = reconcile.dry_run().await.unwrap();
    assert_eq!(
        found[0].unusable.as_deref(),
        Some("its API version is 2019-02-19, which is not expected")
    );

    drop(reconcile);
    // None of the listed events has one of these types.
    let others = StripeEvents::new(Secret::new(KEY).unwrap(), ["charge.*"]).http(http.clone());
    assert!(
        application
            .reconcile(others)
            .dry_run()
            .await
            .unwrap()
            .is_empty()
    );

    // An event of a connected account names the account.
    let application = Application::of("stripe").await;
    let connected = application
        .reconcile(events().account("acct_1"))
        .look_back(DAY);
    assert_eq!(connected.run_once().await.unwrap().missed, 2);
    application
        .database
        .until(
            r#"exists (
                select from idempotent_webhook.kept_requests
                where delivery_id = 'stripe-99'
                    and convert_from(body, 'utf8')::jsonb ->> 'account' = 'acct_1'
                    and convert_from(body, 'utf8')::jsonb ->> 'type' = 'invoice.paid'
            )"#,
        )
        .await;
}
