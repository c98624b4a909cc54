//! If the application uses an extractor wrongly, the answer is a 500 that reveals nothing to the
//! sender.

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery};

use crate::support::{TestApp, answer, assert_rows, github, logged, send};

#[tokio::test]
async fn a_transaction_taken_twice_is_a_500_and_rolled_back() {
    async fn twice(_: DedupeTx, _: DedupeTx) {}
    let app = TestApp::github(twice).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(500, "failed", "internal error")
    );
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn a_route_without_the_layer_is_a_500() {
    async fn transaction(_: DedupeTx) {}
    async fn delivery(_: Delivery) {}
    for method in [post(transaction), post(delivery)] {
        let router = Router::new().route("/", method);
        let log = logged(async {
            assert_eq!(
                send(&router, github("a", "{}")).await,
                answer(500, "", "internal error")
            );
        })
        .await;
        assert!(log.contains("after its `.route(..)`"), "{log}");
    }
}
