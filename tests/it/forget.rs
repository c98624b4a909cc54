//! Having a delivery processed once more.

use std::collections::HashMap;
use std::time::Duration;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Endpoint, IdempotentWebhook, Secret, Secrets, TenantSecrets, presets};

use crate::log::logged;
use crate::support::{Webhook, assert_rows, github, ok, secret, send};

#[tokio::test]
async fn a_delivery_that_was_forgotten_is_processed_once_more() {
    let webhook = Webhook::new(ok).await;
    let pool = &webhook.database.pool;
    let outcome = async || webhook.send(github("a", "{}")).await.outcome;
    assert_eq!(outcome().await, "processed");
    assert_eq!(outcome().await, "duplicate");

    assert!(
        !Endpoint::new(pool.clone(), "test")
            .forget("b")
            .await
            .unwrap()
    );
    assert!(
        !Endpoint::new(pool.clone(), "another")
            .forget("a")
            .await
            .unwrap()
    );
    assert_eq!(outcome().await, "duplicate");

    let log = logged(async {
        assert!(
            Endpoint::new(pool.clone(), "test")
                .forget("a")
                .await
                .unwrap()
        )
    })
    .await;
    for part in ["INFO", "webhook delivery forgotten", r#"delivery_id="a""#] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(outcome().await, "processed");
    assert_eq!(outcome().await, "duplicate");
    assert_rows!(webhook.database, claims: 1, effects: 2);
}

#[tokio::test]
async fn the_memory_of_this_process_forgets_as_well() {
    let remember = |layer: IdempotentWebhook| layer.cache_processed(10, Duration::from_secs(600));
    let webhook = Webhook::with(presets::github(secret()), remember, ok).await;
    let another_route = webhook.elsewhere_with(remember, ok).await;
    let routers = [&webhook.router, &another_route];
    for (round, router) in routers.into_iter().enumerate() {
        let outcome = async || send(router, github("a", "{}")).await.outcome;
        assert_eq!(outcome().await, "processed");
        assert_eq!(outcome().await, "duplicate");
        assert!(
            Endpoint::new(webhook.database.pool.clone(), "test")
                .forget("a")
                .await
                .unwrap()
        );
        assert_eq!(outcome().await, "processed");
        assert!(
            Endpoint::new(webhook.database.pool.clone(), "test")
                .forget("a")
                .await
                .unwrap()
        );
        let effects = 2 * (i64::try_from(round).unwrap() + 1);
        assert_rows!(webhook.database, claims: 0, effects: effects);
    }
}

#[tokio::test]
async fn what_the_replay_guard_knows_of_it_is_forgotten_too() {
    let webhook = Webhook::with(
        presets::github(secret()),
        IdempotentWebhook::replay_guard,
        ok,
    )
    .await;
    assert_eq!(webhook.send(github("a", "{}")).await.outcome, "processed");
    assert_eq!(webhook.send(github("b", "{}")).await.outcome, "duplicate");
    let pool = &webhook.database.pool;
    // Of those that say the same, the first stands for it.
    let unguarded = webhook
        .elsewhere_with(IdempotentWebhook::compare_bodies, ok)
        .await;
    assert_eq!(
        send(&unguarded, github("b", "{}")).await.outcome,
        "processed"
    );
    assert!(
        Endpoint::new(pool.clone(), "test")
            .forget("b")
            .await
            .unwrap()
    );
    assert_eq!(webhook.send(github("b", "{}")).await.outcome, "duplicate");
    assert!(
        Endpoint::new(pool.clone(), "test")
            .forget("a")
            .await
            .unwrap()
    );
    assert_eq!(webhook.send(github("b", "{}")).await.outcome, "processed");
    assert_rows!(webhook.database, claims: 1, effects: 3);
}

#[tokio::test]
async fn a_delivery_of_one_tenant_is_forgotten_for_that_tenant() {
    let secrets = TenantSecrets::new(
        |head| head.uri.query().map(str::to_owned),
        async |_| Ok(Some(Secrets::new(Secret::new("a secret")?))),
    );
    let webhook = Webhook::of(presets::github(secrets.separate_ids()), ok).await;
    let outcome = async |tenant: &str| {
        let sent = TestDelivery::new(&presets::github(Secret::new("a secret").unwrap()))
            .uri(&format!("/?{tenant}"));
        webhook.send(sent.request()).await.outcome
    };
    for tenant in ["acme", "globex"] {
        assert_eq!(outcome(tenant).await, "processed");
    }
    let pool = &webhook.database.pool;
    assert!(
        !Endpoint::new(pool.clone(), "test")
            .forget("delivery-1")
            .await
            .unwrap()
    );
    let forgotten = Endpoint::new(pool.clone(), "test")
        .tenant("acme")
        .forget("delivery-1")
        .await;
    assert!(forgotten.unwrap());
    let outcomes = HashMap::from([
        ("acme", outcome("acme").await),
        ("globex", outcome("globex").await),
    ]);
    assert_eq!(outcomes["acme"], "processed");
    assert_eq!(outcomes["globex"], "duplicate");
}
