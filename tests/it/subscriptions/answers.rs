//! Answers of the APIs: pages, and failures that say nothing about the subscription.

use std::time::Duration;

use idempotent_webhook::subscriptions::{
    Http, SourceError, Subscription, SubscriptionSource, Subscriptions,
};
use provider_apis::{Api, Hook, KEY, Refusal, SUBSCRIPTIONS, at, subscriptions};

use super::{URL, found, layer, of};
use crate::support::Database;

#[tokio::test]
async fn y2_each_provider_is_read_to_its_last_page() {
    let database = Database::new().await;
    for provider in SUBSCRIPTIONS {
        let (api, address) = Api::start(provider).await;
        let others = (1..450).map(|number| Hook::new(number, "https://other.example/a", &["A"]));
        api.set_hooks(others.chain([Hook::new(450, URL, &["A"])]));
        let subscriptions = of(&database.pool, provider, &[], at(address));
        let report = subscriptions.compare().await.unwrap();
        assert_eq!(
            report.to_string(),
            "The subscription is as expected.\n",
            "{provider}"
        );
        let pages = api.requests().len();
        let expected = if provider == "paddle" { 3 } else { 5 };
        assert_eq!(pages, expected, "{provider}: {:?}", api.requests());
    }
}

#[tokio::test]
async fn y2_an_api_that_fails_says_nothing_of_the_subscription() {
    let database = Database::new().await;
    for provider in SUBSCRIPTIONS {
        let (api, address) = Api::start(provider).await;
        let http = || at(address).timeout(Duration::from_millis(300));
        let asked = of(&database.pool, provider, &[], http());
        let error = async || {
            let error = asked.compare().await.unwrap_err().to_string();
            assert!(!error.contains(KEY), "{provider}: {error}");
            error
        };
        for (refusal, told) in [
            (Refusal::TooMany(Some(7)), "429"),
            (Refusal::TooMany(None), "429"),
            (Refusal::Broken, "500"),
            (Refusal::Html, "the answer differs from the documentation"),
            (
                Refusal::Malformed,
                "the answer differs from the documentation",
            ),
            (Refusal::Unprocessable, "422"),
            (Refusal::Echo, "502"),
        ] {
            // The subscription is also found on a later page.
            let others =
                (1..450).map(|number| Hook::new(number, "https://other.example/a", &["A"]));
            api.set_hooks(others);
            api.pass();
            api.refuse(refusal);
            let error = error().await;
            let is_told = error.contains(told)
                || matches!((provider, refusal), ("shopify", Refusal::Malformed));
            assert!(is_told, "{provider}, {refusal:?}: {error}");
        }
        api.delay(Duration::from_secs(5));
        let slow = error().await;
        assert!(slow.contains("timed out"), "{provider}: {slow}");
        api.delay(Duration::ZERO);
        // The API answers again.
        assert!(asked.compare().await.unwrap().has_errors());

        let source = subscriptions(provider, http(), "sk_test_of_somebody_else");
        let layer = layer(&database.pool, provider, &[]);
        let stranger = Subscriptions::new(&layer, source, URL).unwrap();
        let error = stranger.compare().await.unwrap_err().to_string();
        assert!(error.contains("401"), "{provider}: {error}");
    }
    let nobody = of(
        &database.pool,
        "stripe",
        &[],
        Http::new().base("http://127.0.0.1:1"),
    );
    assert!(nobody.compare().await.is_err());
}

#[tokio::test]
async fn y2_paddle_sends_no_webhook_to_an_email_address() {
    let database = Database::new().await;
    let hooks = [Hook::new(
        1,
        "alerts@example.com",
        &["transaction.completed"],
    )];
    let report = found(&database.pool, "paddle", &[], hooks).await;
    assert!(
        report
            .to_string()
            .contains("and there is no other subscription"),
        "{report}"
    );
}

struct Panics;

impl SubscriptionSource for Panics {
    fn name(&self) -> String {
        "panics".to_owned()
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        panic!("as the test says");
    }
}

struct Hangs;

impl SubscriptionSource for Hangs {
    fn name(&self) -> String {
        "hangs".to_owned()
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn y2_a_source_that_panics_or_hangs_is_an_error() {
    let database = Database::new().await;
    let panics = Subscriptions::new(&layer(&database.pool, "stripe", &[]), Panics, URL).unwrap();
    let error = panics.compare().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the provider could not be asked: it panicked: as the test says"
    );
    let hangs = Subscriptions::new(&layer(&database.pool, "stripe", &[]), Hangs, URL).unwrap();
    tokio::time::pause();
    let error = hangs.compare().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the provider could not be asked: it took longer than 2 minutes"
    );
}
