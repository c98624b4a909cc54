//! The API of Paddle Billing.

#[cfg(feature = "postgres")]
mod events;
mod subscriptions;

#[cfg(feature = "postgres")]
pub use events::PaddleNotifications;
pub use subscriptions::PaddleSubscriptions;

use serde::Deserialize;

use super::client::{Api, Authorization};
use crate::provider::Secret;

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Pagination {
    has_more: bool,
}

fn api(key: Secret) -> Api {
    Api::new("https://api.paddle.com", Authorization::Bearer(key))
}
