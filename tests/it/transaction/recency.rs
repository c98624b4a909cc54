//! Stale events: `advance` reports which version of a subject is the newest.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Recency, presets};
use serde::Deserialize;
use tokio::sync::{Barrier, Mutex};

use crate::support::{
    TestApp, answer, assert_rows, github, now, secret, send, spawn_send, stripe, write_effect,
};

#[derive(Deserialize)]
struct Event {
    subject: String,
    version: i64,
}

/// Applies an event unless it is stale, and returns whether it was stale.
async fn apply(tx: &mut DedupeTx, event: &Event) -> sqlx::Result<Recency> {
    let recency = tx.advance(&event.subject, event.version).await?;
    if recency == Recency::Newer {
        sqlx::query("insert into effects values ($1)")
            .bind(format!("{}@{}", event.subject, event.version))
            .execute(&mut **tx)
            .await?;
    }
    Ok(recency)
}

async fn handler(mut tx: DedupeTx, Json(event): Json<Event>) -> Result<String, StatusCode> {
    match apply(&mut tx, &event).await {
        Ok(recency) => Ok(format!("{recency:?}")),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn event(subject: &str, version: i64) -> String {
    format!(r#"{{"subject":"{subject}","version":{version}}}"#)
}

async fn highest(app: &TestApp, subject: &str) -> i64 {
    sqlx::query_scalar("select version from idempotent_webhook.subjects where subject = $1")
        .bind(subject)
        .fetch_one(&app.database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn every_order_of_three_events_ends_with_the_newest() {
    let app = TestApp::github(handler).await;
    for (order, expected) in [
        ([1, 2, 3], ["Newer", "Newer", "Newer"]),
        ([1, 3, 2], ["Newer", "Newer", "Older"]),
        ([2, 1, 3], ["Newer", "Older", "Newer"]),
        ([2, 3, 1], ["Newer", "Newer", "Older"]),
        ([3, 1, 2], ["Newer", "Older", "Older"]),
        ([3, 2, 1], ["Newer", "Older", "Older"]),
        ([2, 2, 1], ["Newer", "Same", "Older"]),
        ([-1, i64::MAX, i64::MIN], ["Newer", "Newer", "Older"]),
    ] {
        let subject = format!("{order:?}");
        for (n, (version, expected)) in order.into_iter().zip(expected).enumerate() {
            let id = format!("{subject} {n}").replace(' ', "");
            let answer = app.send(github(&id, event(&subject, version))).await;
            assert_eq!(answer.body, expected, "{version} of {order:?}");
        }
        let newest = order.into_iter().max().unwrap();
        assert_eq!(highest(&app, &subject).await, newest, "{order:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_events_that_race_the_newest_stays_and_none_is_newer_twice() {
    // All handlers are in their transactions before any of them calls `advance`.
    let barrier = Arc::new(Barrier::new(5));
    let applied = Arc::new(Mutex::new(Vec::new()));
    let racing = {
        let applied = applied.clone();
        async move |mut tx: DedupeTx, Json(event): Json<Event>| {
            barrier.wait().await;
            let recency = apply(&mut tx, &event).await;
            if let Ok(Recency::Newer) = recency {
                // The subject is still locked here, so the versions are noted in the order in which
                // they were applied.
                applied.lock().await.push(event.version);
            }
            match recency {
                Ok(recency) => Ok(format!("{recency:?}")),
                Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
            }
        }
    };
    let app = TestApp::github_with(|layer| layer.max_connections(5), racing).await;
    for round in 0..20 {
        let subject = format!("round-{round}");
        let mut versions = [1, 2, 3, 3, 4];
        fastrand::shuffle(&mut versions);
        let sent: Vec<_> = versions
            .into_iter()
            .enumerate()
            .map(|(n, version)| {
                let id = format!("{round}-{n}");
                spawn_send(&app.router, github(&id, event(&subject, version)))
            })
            .collect();
        for sent in sent {
            assert_eq!(sent.await.unwrap().status, 200);
        }
        let applied = std::mem::take(&mut *applied.lock().await);
        assert!(applied.is_sorted_by(|a, b| a < b), "{applied:?}");
        assert_eq!(applied.last(), Some(&4));
        assert_eq!(highest(&app, &subject).await, 4);
    }
}

#[tokio::test]
async fn what_is_rolled_back_has_not_advanced() {
    let app = TestApp::github(async |mut tx: DedupeTx, Json(event): Json<Event>| {
        apply(&mut tx, &event).await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    })
    .await;
    let request = || github("a", event("sub_1", 7));
    assert_eq!(app.send(request()).await.status, 500);
    assert_rows!(app.database, claims: 0, effects: 0);
    let elsewhere = app.elsewhere(handler).await;
    assert_eq!(send(&elsewhere, request()).await.body, "Newer");
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn endpoints_have_subjects_of_their_own() {
    let app = TestApp::github(handler).await;
    let other = axum::routing::post(handler).layer(IdempotentWebhook::new(
        app.database.pool.clone(),
        "other",
        presets::github(secret()),
    ));
    let other = axum::Router::new().route("/", other);
    let request = || github("a", event("sub_1", 7));
    assert_eq!(app.send(request()).await.body, "Newer");
    assert_eq!(send(&other, request()).await.body, "Newer");
}

#[tokio::test]
async fn nobody_pays_for_subjects_who_does_not_advance_any() {
    let app = TestApp::github(write_effect).await;
    app.database
        .run("drop table idempotent_webhook.subjects")
        .await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
}

#[tokio::test]
async fn what_is_stale_can_be_skipped_and_acknowledged() {
    async fn skipping(
        mut tx: DedupeTx,
        delivery: Delivery,
        Json(event): Json<Event>,
    ) -> StatusCode {
        assert_eq!(delivery.endpoint(), "test");
        match apply(&mut tx, &event).await.unwrap() {
            Recency::Newer => StatusCode::OK,
            Recency::Same | Recency::Older => StatusCode::ACCEPTED,
        }
    }
    let app = TestApp::github(skipping).await;
    let send = async |id: &str, version| app.send(github(id, event("s", version))).await;
    assert_eq!(send("new", 2).await.status, 200);
    assert_eq!(send("old", 1).await.status, 202);
    // A stale event is a delivery like any other, and is not processed again.
    assert_eq!(send("old", 1).await.outcome, "duplicate");
    assert_rows!(app.database, claims: 2, effects: 1);
}

/// With Stripe's `created`, for example, two updates within one second have the same version.
/// Neither is skipped, so the update that is applied second wins.
#[tokio::test]
async fn of_two_events_of_one_second_neither_is_skipped() {
    #[derive(Deserialize)]
    struct Update {
        created: i64,
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        object: Subscription,
    }
    #[derive(Deserialize)]
    struct Subscription {
        id: String,
        status: String,
    }
    async fn upsert(mut tx: DedupeTx, Json(event): Json<Update>) -> StatusCode {
        let subscription = &event.data.object;
        if tx.advance(&subscription.id, event.created).await.unwrap() != Recency::Older {
            sqlx::query(
                "insert into subscriptions values ($1, $2)
                 on conflict (id) do update set status = excluded.status",
            )
            .bind(&subscription.id)
            .bind(&subscription.status)
            .execute(&mut *tx)
            .await
            .unwrap();
        }
        StatusCode::OK
    }
    let app = TestApp::of(presets::stripe(secret()), upsert).await;
    app.database
        .run("create table subscriptions (id text primary key, status text)")
        .await;
    for (id, created, status) in [
        ("evt_1", 1_700_000_001, "incomplete"),
        ("evt_2", 1_700_000_001, "active"),
        ("evt_0", 1_700_000_000, "late"),
    ] {
        let body = format!(
            r#"{{"id":"{id}","type":"customer.subscription.updated","created":{created},
                "data":{{"object":{{"id":"sub_1","status":"{status}"}}}}}}"#
        );
        let answered = app.send(stripe(body, now())).await;
        assert_eq!(answered, answer(200, "processed", ""));
    }
    let last: String = sqlx::query_scalar("select status from subscriptions")
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(last, "active");
}
