//! Guarantee V4: an application replaces the layer by a table of its own, as the guide describes,
//! while deliveries arrive.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, presets};

use super::moving_in::{Deploys, by_hand, with_both, with_the_layer};
use super::{blocks, page};
use crate::support::{Database, answer, github, recovery, secret, send};

/// Sends a delivery that fails and is kept.
async fn fail(database: &Database, body: &str) {
    let recovery = recovery(&database.pool);
    let layer = IdempotentWebhook::new(database.pool.clone(), "billing", presets::github(secret()))
        .keep(Keep::failed(&recovery));
    let handler = post(async |_: DedupeTx| (StatusCode::CONFLICT, "no such order")).layer(layer);
    let app = Router::new().route("/", handler);
    let sent = send(&app, github("unfinished", body)).await;
    assert_eq!(sent, answer(409, "kept", "no such order"));
}

#[tokio::test(flavor = "multi_thread")]
async fn v4_nothing_runs_twice_or_is_lost_while_an_application_leaves() {
    let database = Database::new().await;
    let guide = page("leaving.md");
    let [create, copy, keep, drop] = &*blocks(&guide, "sql") else {
        panic!("{guide}");
    };
    let pool = async || database.another_pool(4).await;
    fail(&database, r#"{"order":7}"#).await;

    let mut deploys = Deploys::begin(with_the_layer(pool().await)).await;
    database.run(create).await;
    let both = [with_the_layer(pool().await), with_both(pool().await)];
    deploys.deploy(both).await;
    let both = [with_both(pool().await), with_both(pool().await)];
    deploys.deploy(both).await;
    let claimed = "select count(*) from idempotent_webhook.deliveries";
    let claimed = database.count(claimed).await;
    database.run(copy).await;
    let copied = database
        .count("select count(*) from processed_events")
        .await;
    assert!(copied >= claimed, "{copied} of {claimed}");
    let both = [with_both(pool().await), by_hand(pool().await)];
    deploys.deploy(both).await;
    let both = [by_hand(pool().await), by_hand(pool().await)];
    deploys.deploy(both).await;
    database.run(keep).await;
    database.run(drop).await;
    let sent = deploys.end(by_hand(pool().await)).await;

    let effects = database.count("select count(*) from effects").await;
    let once = "select count(distinct delivery_id) from effects";
    assert_eq!((effects, database.count(once).await), (sent, sent));
    let left = "select count(*) from pg_namespace where nspname = 'idempotent_webhook'";
    assert_eq!(database.count(left).await, 0);
    let unfinished = "select count(*) from unfinished_webhooks
        where delivery_id = 'unfinished' and state = 'due' and body = '{\"order\":7}'::bytea";
    assert_eq!(database.count(unfinished).await, 1);
}
