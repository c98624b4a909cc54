//! The guide's test for a webhook that never arrived, with the list from the guide.

use std::time::{Duration, SystemTime};

use axum::Router;
use axum::routing::{get, post};
use idempotent_webhook::reconcile::{Http, StripeEvents};
use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Reconcile, Recovery, Secret, presets};
use tokio::net::TcpListener;

use super::{blocks, function, page};
use crate::support::{Database, assert_rows, now};

/// The same function as in the guide.
async fn finds_what_is_missing(
    stripe: IdempotentWebhook,
    app: Router,
    recovery: Recovery,
    address: String,
) -> Result<(), Box<dyn std::error::Error>> {
    // Stripe's path comes after the address: `GET {address}/v1/events`.
    let api = Http::new().base(address);
    let events = StripeEvents::new(Secret::new("rk_test")?, ["invoice.paid"]).http(api);
    let reconcile = Reconcile::new(&stripe, events, "/webhooks/stripe")?
        .since(SystemTime::now() - Duration::from_secs(60 * 60))
        .grace(Duration::ZERO);
    reconcile.run_once().await?;
    let attempts = recovery.run_due(&app).await?;
    assert_eq!(attempts.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_test_with_the_list_of_the_guide_finds_what_is_missing() {
    let guide = page("testing.md");
    let name = "finds_what_is_missing(";
    assert_eq!(
        function(include_str!("missing.rs"), name),
        function(&guide, name)
    );
    let list = blocks(&guide, "json")[0].replace("1790000000", &(now() - 60).to_string());

    let database = Database::new().await;
    let recovery = Recovery::new(database.pool.clone());
    let stripe = presets::stripe(Secret::new("whsec_test").unwrap());
    let stripe = IdempotentWebhook::new(database.pool.clone(), "billing", stripe)
        .keep(Keep::failed(&recovery));
    let handler = post(async |_: DedupeTx| {}).layer(stripe.clone());
    let app = Router::new().route("/webhooks/stripe", handler);
    let api = Router::new().route("/v1/events", get(async move || list));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, api).await });
    finds_what_is_missing(stripe, app, recovery, address)
        .await
        .unwrap();
    server.abort();
    assert_rows!(database, claims: 1, effects: 0);
}
