//! The orders that an operator gives to the application.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use idempotent_webhook::Endpoint;
use idempotent_webhook::recovery::{Discarded, Reprocessed, Retried};
use sqlx::PgPool;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Retry,
    Discard,
    Reprocess,
    /// Pauses the whole endpoint. The order that ends the pause also applies to the whole endpoint.
    Pause,
    Resume,
}

const ORDERS: [(Order, &str); 5] = [
    (Order::Retry, "retry"),
    (Order::Discard, "discard"),
    (Order::Reprocess, "reprocess"),
    (Order::Pause, "pause"),
    (Order::Resume, "resume"),
];

/// The route at which the application takes orders.
pub const ROUTE: &str = "/operate/{order}/{endpoint}/{id}";

/// How long a discard waits for a running attempt.
const PATIENCE: Duration = Duration::from_secs(3);

impl Order {
    pub fn path(self, endpoint: &str, id: &str) -> String {
        format!("/operate/{}/{endpoint}/{id}", self.name())
    }

    /// The order that is given at a path. `None` for a provider's path.
    pub fn at(path: &str) -> Option<Self> {
        let (name, _) = path.strip_prefix("/operate/")?.split_once('/')?;
        Self::of(name)
    }

    pub fn name(self) -> &'static str {
        let known = ORDERS.iter().find(|(order, _)| *order == self);
        known.map(|(_, name)| *name).unwrap()
    }

    fn of(name: &str) -> Option<Self> {
        let known = ORDERS.iter().find(|(_, known)| *known == name);
        known.map(|(order, _)| *order)
    }

    /// Returns whether it changed anything.
    async fn carry_out(self, endpoint: &Endpoint, id: &str) -> sqlx::Result<bool> {
        match self {
            Self::Retry => Ok(endpoint.retry(id).await? == Retried::Due),
            Self::Discard => Ok(endpoint.discard(id).await? == Discarded::Discarded),
            Self::Reprocess => Ok(endpoint.reprocess(id).await? == Reprocessed::Due),
            Self::Pause => endpoint.pause().await.map(|()| true),
            Self::Resume => endpoint.resume().await.map(|()| true),
        }
    }
}

/// Carries out an order.
pub async fn operate(
    State(pool): State<PgPool>,
    Path((order, endpoint, id)): Path<(String, String, String)>,
) -> StatusCode {
    let Some(order) = Order::of(&order) else {
        return StatusCode::BAD_REQUEST;
    };
    let endpoint = Endpoint::new(pool, endpoint);
    match tokio::time::timeout(PATIENCE, order.carry_out(&endpoint, &id)).await {
        Ok(Ok(true)) => StatusCode::OK,
        Ok(Ok(false)) => StatusCode::NOT_FOUND,
        Ok(Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
