//! Two layers share nothing but the recovery handle, even if they were given the same `Keep`.

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::Request;
use axum::routing::post;
use idempotent_webhook::{IdempotentWebhook, Keep, Recovery, presets};

use crate::support::{
    Database, Failing, NOTHING_KEPT, answer, assert_rows, github, keep, keep_accepted, keep_all,
    lock, recovery, secret, send, spawn_send, until_all_wait, write_effect,
};

/// Two routes, `/a` and `/b`, with an endpoint each. Their layers have the same `Keep`.
fn two_layers<H, T>(database: &Database, keep: &Keep, handler: H) -> Router
where
    H: Handler<T, ()>,
    T: 'static,
{
    ["a", "b"].into_iter().fold(Router::new(), |router, name| {
        let layer = IdempotentWebhook::new(database.pool.clone(), name, presets::github(secret()))
            .keep(keep.clone());
        router.route(&format!("/{name}"), post(handler.clone()).layer(layer))
    })
}

fn to(path: &str, id: &str) -> Request<Body> {
    let mut request = github(id, "{}");
    *request.uri_mut() = path.parse().unwrap();
    request
}

const BOTH: [&str; 2] = ["/a", "/b"];

#[tokio::test(flavor = "multi_thread")]
async fn k1_of_one_id_at_two_endpoints_with_one_keep_each_is_processed() {
    for way in [keep, keep_all, keep_accepted] {
        let database = Database::new().await;
        let recovery = recovery(&database.pool);
        // Three attempts fail, so some deliveries are kept.
        let router = two_layers(&database, &way(&recovery), Failing::times(3).handler());
        let task = recovery.clone().spawn(router.clone());
        let mut sending = Vec::new();
        for n in 0..30 {
            for path in BOTH {
                sending.push(spawn_send(&router, to(path, &n.to_string())));
            }
        }
        for sent in sending {
            let outcome = sent.await.unwrap().outcome;
            assert!(
                ["processed", "kept", "accepted"].contains(&&*outcome),
                "{outcome}"
            );
        }
        database.until(NOTHING_KEPT).await;
        task.stop().await;
        for endpoint in ["a", "b"] {
            database
                .until(&format!(
                    "(select count(*) from idempotent_webhook.deliveries
                      where endpoint = '{endpoint}') = 30"
                ))
                .await;
        }
        assert_rows!(database, claims: 60, effects: 60);
    }
}

/// Deliveries that arrive during one commit share the next commit.
#[tokio::test]
async fn k1_what_two_endpoints_accept_during_one_commit_is_kept_of_each() {
    let database = Database::new().await;
    let recovery = recovery(&database.pool);
    let router = two_layers(&database, &keep_accepted(&recovery), write_effect);
    let locked = lock(&database, "kept_deliveries").await;
    let mut sending = Vec::new();
    for id in ["first", "second"] {
        for path in BOTH {
            sending.push(spawn_send(&router, to(path, id)));
        }
        until_all_wait().await;
    }
    locked.rollback().await.unwrap();
    for sent in sending {
        assert_eq!(sent.await.unwrap(), answer(200, "accepted", ""));
    }
    let task = recovery.spawn(router);
    database.until(NOTHING_KEPT).await;
    task.stop().await;
    assert_rows!(database, claims: 4, effects: 4);
}

/// One endpoint has processed a delivery id. The id is still new to the other endpoint.
#[tokio::test]
async fn k1_an_id_that_one_endpoint_has_processed_is_no_duplicate_at_the_other() {
    for way in [keep, keep_all, keep_accepted] {
        let database = Database::new().await;
        let recovery = recovery(&database.pool);
        let router = two_layers(&database, &way(&recovery), write_effect);
        let task = recovery.clone().spawn(router.clone());
        for (path, claims) in BOTH.into_iter().zip([1, 2]) {
            assert_ne!(send(&router, to(path, "a")).await.outcome, "duplicate");
            database.until(NOTHING_KEPT).await;
            assert_rows!(database, claims: claims, effects: claims);
            assert_eq!(send(&router, to(path, "a")).await.outcome, "duplicate");
        }
        task.stop().await;
    }
}

#[tokio::test]
async fn r3_a_quota_that_one_endpoint_has_exhausted_is_that_endpoints_alone() {
    for way in [keep, keep_accepted] {
        let database = Database::new().await;
        let recovery = Recovery::elsewhere(database.pool.clone());
        let handler = Failing::times(99).handler();
        let router = two_layers(&database, &way(&recovery).quota(1, 1000), handler);
        let full = async || {
            for n in 0.. {
                let outcome = send(&router, to("/a", &n.to_string())).await.outcome;
                if outcome == "failed" {
                    break;
                }
                assert!(n < 100, "the quota is never exhausted");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        full().await;
        let kept = send(&router, to("/b", "a")).await.outcome;
        assert!(["kept", "accepted"].contains(&&*kept), "{kept}");
        database
            .until(
                "exists (
                    select from idempotent_webhook.kept_deliveries where endpoint = 'b'
                )",
            )
            .await;
        assert_rows!(database, claims: 0, effects: 0);
    }
}
