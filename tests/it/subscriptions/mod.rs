//! Guarantee Y2: the provider's subscription for an endpoint, compared with the layer's table of
//! types.

mod answers;
mod differences;
mod task;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::subscriptions::{
    Http, SubscriptionReport, SubscriptionSource, Subscriptions,
};
use idempotent_webhook::{DedupeTx, Events, IdempotentWebhook};
use provider_apis::{Api, Hook, KEY, at, preset, subscriptions};
use sqlx::PgPool;

const URL: &str = "https://example.com/webhooks";

async fn handle(_: DedupeTx) -> StatusCode {
    StatusCode::OK
}

/// The layer of an endpoint, with a table of these types if there are any.
fn layer(pool: &PgPool, provider: &str, handled: &[&str]) -> IdempotentWebhook {
    let layer = IdempotentWebhook::new(pool.clone(), "test", preset(provider));
    if !handled.is_empty() {
        let mut events = Events::new();
        for &name in handled {
            events = events.on(name, handle);
        }
        let events = events.ignore_others();
        let _: Router = Router::new().route("/", post(events.layer(layer.clone())));
    }
    layer
}

fn of(
    pool: &PgPool,
    provider: &str,
    handled: &[&str],
    http: Http,
) -> Subscriptions<impl SubscriptionSource> {
    let source = subscriptions(provider, http, KEY);
    Subscriptions::new(&layer(pool, provider, handled), source, URL).unwrap()
}

/// The findings about these subscriptions.
async fn found(
    pool: &PgPool,
    provider: &'static str,
    handled: &[&str],
    hooks: impl IntoIterator<Item = Hook>,
) -> SubscriptionReport {
    let (api, address) = Api::start(provider).await;
    api.set_hooks(hooks);
    let subscriptions = of(pool, provider, handled, at(address));
    subscriptions.compare().await.unwrap()
}
