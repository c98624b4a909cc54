//! Guarantee P6: the tolerance never refuses a provider's own retry, and the delivery id protects against replays.

use std::time::{Duration, SystemTime};

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, presets, prune};

use crate::support::{TestApp, answer, assert_rows, secret, write_effect};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A captured delivery that its provider signed this long ago.
fn captured(provider: &Provider, id: &str, age: Duration) -> TestDelivery {
    TestDelivery::new(provider)
        .id(id)
        .body(format!(r#"{{"event_id":"{id}","id":"{id}","event":"e"}}"#))
        .at(SystemTime::now() - age)
}

#[tokio::test]
async fn a_captured_request_is_a_duplicate_while_it_is_remembered_and_then_too_old() {
    for provider in [presets::paddle(secret()), presets::workos(secret())] {
        let window = provider.description().redelivery_window;
        assert_eq!(provider.description().tolerance.past(), Some(window));
        let app = TestApp::of(provider.clone(), write_effect).await;
        let [recent, old] = ["recent", "old"].map(|id| captured(&provider, id, window - DAY));
        for delivery in [&recent, &old] {
            let processed = app.send(delivery.request()).await;
            assert_eq!(processed, answer(200, "processed", "done"));
        }
        let days_ago = |id: &str, age: Duration| {
            let days = age.as_secs() / DAY.as_secs();
            format!(
                "update idempotent_webhook.deliveries
                 set received_at = now() - interval '{days} days' where delivery_id = '{id}'"
            )
        };
        // Each delivery was processed when it was signed. For one of them, two more days pass.
        app.database.run(&days_ago("recent", window - DAY)).await;
        app.database.run(&days_ago("old", window + DAY)).await;
        let old = captured(&provider, "old", window + DAY);

        let pruned = prune(&app.database.pool, window).await.unwrap();
        assert_eq!(pruned.deliveries, 1);
        assert_eq!(
            app.send(recent.request()).await,
            answer(200, "duplicate", "")
        );
        assert_eq!(
            app.send(old.request()).await,
            answer(401, "rejected", "signature missing or not valid")
        );
        assert_eq!(app.runs(), 2);
        assert_rows!(app.database, claims: 1, effects: 2);
    }
}
