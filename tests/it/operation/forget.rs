//! `forget`: an operator lets a delivery be processed once more when it is sent again.

use std::collections::HashMap;

use idempotent_webhook::{Endpoint, IdempotentWebhook, Secrets, TenantSecrets, presets};

use crate::support::{
    TestApp, assert_rows, github, github_delivery, logged, secret, send, write_effect,
};

#[tokio::test]
async fn a_delivery_that_was_forgotten_is_processed_once_more() {
    let app = TestApp::github(write_effect).await;
    let pool = &app.database.pool;
    let outcome = async || app.send(github("a", "{}")).await.outcome;
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
    assert_rows!(app.database, claims: 1, effects: 2);
}

#[tokio::test]
async fn what_the_replay_guard_knows_of_it_is_forgotten_too() {
    let app = TestApp::github_with(IdempotentWebhook::replay_guard, write_effect).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert_eq!(app.send(github("b", "{}")).await.outcome, "duplicate");
    let pool = &app.database.pool;
    // For several deliveries with the same content, the replay guard stores only the first one.
    let unguarded = app.elsewhere_with(|layer| layer, write_effect).await;
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
    assert_eq!(app.send(github("b", "{}")).await.outcome, "duplicate");
    assert!(
        Endpoint::new(pool.clone(), "test")
            .forget("a")
            .await
            .unwrap()
    );
    assert_eq!(app.send(github("b", "{}")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 3);
}

#[tokio::test]
async fn a_delivery_of_one_tenant_is_forgotten_for_that_tenant() {
    let secrets = TenantSecrets::new(
        |head| head.uri.query().map(str::to_owned),
        async |_| Ok(Some(Secrets::new(secret()))),
    );
    let app = TestApp::of(presets::github(secrets.separate_ids()), write_effect).await;
    let outcome = async |tenant: &str| {
        let sent = github_delivery().uri(&format!("/?{tenant}"));
        app.send(sent.request()).await.outcome
    };
    for tenant in ["acme", "globex"] {
        assert_eq!(outcome(tenant).await, "processed");
    }
    let pool = &app.database.pool;
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
