//! G12: retention cannot undercut retries.

use std::time::Duration;

use idempotent_webhook::{Provider, PruneError, prune};

use crate::support::{Database, Webhook, github, now, ok, secret, send, stripe, stripe_event};

const fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

#[tokio::test]
async fn old_deliveries_are_forgotten_in_batches_and_counted() {
    let database = Database::new().await;
    // More than one piece of the table, of more than one batch each.
    database
        .run(
            "insert into idempotent_webhook.deliveries
                 (endpoint, delivery_id, received_at)
             select 'test', n, now() - (n - 0.5) * interval '1 hour'
             from generate_series(1, 30000) n",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let pruned = prune(&database.pool, days(100)).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (30_000 - 2400, 0));
    assert_eq!(database.rows().await.0, 2400);
    for age in [days(100), Duration::MAX] {
        let pruned = prune(&database.pool, age).await.unwrap();
        assert_eq!(pruned.deliveries, 0);
    }
}

#[tokio::test]
async fn subjects_that_nobody_has_advanced_for_long_are_forgotten() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.subjects (endpoint, subject, version, advanced_at)
             select 'test', n, n, now() - (n - 0.5) * interval '1 hour'
             from generate_series(1, 3000) n",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let pruned = prune(&database.pool, days(100)).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.subjects), (0, 600));
    database
        .until("2400 = (select count(*) from idempotent_webhook.subjects)")
        .await;
}

#[tokio::test]
async fn g12_an_age_below_the_redelivery_window_is_refused() {
    let webhook = Webhook::new(ok).await;
    assert_eq!(webhook.send(github("a", "{}")).await.outcome, "processed");
    webhook
        .database
        .run("update idempotent_webhook.deliveries set received_at = now() - interval '2 days'")
        .await;
    let pool = &webhook.database.pool;
    let refused = prune(pool, days(1)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the provider of endpoint \"test\" may deliver again for 259200 seconds, and \
         deliveries must be kept for at least as long"
    );
    let PruneError::TooShort {
        endpoint,
        redelivery_window,
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((endpoint.as_str(), redelivery_window), ("test", days(3)));
    assert_eq!(webhook.database.rows().await, (1, 1));
    assert_eq!(prune(pool, days(3)).await.unwrap().deliveries, 0);
    assert_eq!(webhook.send(github("a", "{}")).await.outcome, "duplicate");
}

#[tokio::test]
async fn g12_the_longest_window_of_all_endpoints_counts() {
    let webhook = Webhook::of(Provider::stripe(secret()), ok).await;
    let shorter = Provider::stripe(secret()).redelivery_window(days(1));
    let elsewhere = webhook.elsewhere(shorter, ok).await;
    let event = |id| stripe(stripe_event(id), now());
    webhook.send(event("evt_1")).await;
    send(&elsewhere, event("evt_2")).await;
    let pool = &webhook.database.pool;
    assert!(prune(pool, days(29)).await.is_err());
    assert_eq!(prune(pool, days(30)).await.unwrap().deliveries, 0);
    assert_eq!(webhook.database.rows().await, (2, 2));
}
