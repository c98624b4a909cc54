//! An application with a few webhooks, which get many deliveries.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Provider, Recovery, Secret, presets,
};
use sqlx::PgPool;

use super::playground::{Result, send};

/// The versions of the application, before and after the deploy.
pub const VERSION_BEFORE: &str = "1.8.2";
pub const VERSION: &str = "1.9.0";

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub struct Shop {
    pub router: Router,
    providers: [(&'static str, Provider); 4],
}

impl Shop {
    pub async fn new(pool: &PgPool, recovery: &Recovery) -> Result<Self> {
        sqlx::query("create table events (delivery_id text)")
            .execute(pool)
            .await?;
        let secret = || Secret::new("a secret");
        let providers = [
            ("/stripe", presets::stripe(secret()?)),
            ("/github", presets::github(secret()?)),
            ("/slack", presets::slack(secret()?)),
            ("/shopify", presets::shopify(secret()?)),
        ];
        let [stripe, github, slack, shopify] = providers.clone().map(|(_, provider)| provider);
        let layer = |endpoint: &'static str, provider| {
            IdempotentWebhook::new(pool.clone(), endpoint, provider).version(VERSION)
        };
        // In production, use the default delays, which add up to days.
        let soon = |keep: Keep| keep.retry_delays([2, 5, 10].map(Duration::from_secs));
        let archived = |keep: Keep| soon(keep.processed_for(DAY));
        let router = Router::new()
            .route(
                "/stripe",
                post(handle).layer(layer("billing", stripe).keep(archived(Keep::all(recovery)))),
            )
            .route(
                "/github",
                post(handle).layer(layer("deployments", github).keep(soon(Keep::failed(recovery)))),
            )
            .route(
                "/slack",
                post(handle)
                    .layer(layer("commands", slack).keep(archived(Keep::accepted(recovery)))),
            )
            .route(
                "/shopify",
                post(handle)
                    .layer(layer("orders", shopify).keep(Keep::failed(recovery).body_limit(0))),
            );
        Ok(Self { router, providers })
    }

    /// Sends deliveries until this future is dropped.
    pub async fn is_busy(&self) -> Result<()> {
        loop {
            self.receives_something().await?;
            tokio::time::sleep(Duration::from_millis(fastrand::u64(50..400))).await;
        }
    }

    /// Sends a delivery of one of the providers. Some deliveries are sent twice, and some are forged.
    pub async fn receives_something(&self) -> Result<()> {
        let Some((uri, provider)) = fastrand::choice(&self.providers) else {
            return Ok(());
        };
        let number = fastrand::u32(100_000..);
        let body = format!(
            r#"{{"id":"evt_{number}","event_id":"Ev{number}","type":"event_callback","team_id":"T1","api_app_id":"A1","event":{{"type":"app_mention"}},"order":{number},"amount":12345678901234567890.10}}"#
        );
        let delivery = TestDelivery::new(provider).uri(uri).body(body.clone());
        let delivery = match *uri {
            "/github" => delivery.id(format!("{number:08x}-push")).event_type("push"),
            "/shopify" => delivery
                .id(format!("order-{number}"))
                .event_type("orders/create"),
            _ => delivery,
        };
        match fastrand::u32(..20) {
            0 => drop(send(&self.router, &delivery.tampered()).await?),
            1 | 2 => {
                send(&self.router, &delivery).await?;
                send(&self.router, &delivery).await?;
            }
            _ => drop(send(&self.router, &delivery).await?),
        }
        Ok(())
    }
}

/// Every third delivery fails at first, and every tenth always fails. Deliveries from before the start of the example
/// succeed, as if the cause had been fixed.
async fn handle(
    mut tx: DedupeTx,
    delivery: Delivery,
) -> std::result::Result<StatusCode, HandlerError> {
    sqlx::query("insert into events (delivery_id) values ($1)")
        .bind(delivery.id())
        .execute(&mut *tx)
        .await?;
    if delivery.first_received_at().elapsed()? > HOUR {
        return Ok(StatusCode::OK);
    }
    let digits = delivery.id().as_str().bytes().map(u32::from).sum::<u32>();
    match digits % 30 {
        0 => {
            Err(HandlerError::new(format!("no such order: {digits}")).status(StatusCode::CONFLICT))
        }
        10 => Err(HandlerError::new("the tax service answered 500")),
        20 => Err(HandlerError::new("the stock of an article is negative")),
        rest if rest % 3 == 1 && delivery.attempt() == 1 => Err(HandlerError::new(format!(
            "deadlock detected in process {digits}"
        ))),
        _ => Ok(StatusCode::OK),
    }
}
