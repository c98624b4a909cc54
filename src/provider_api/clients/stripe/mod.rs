//! The API of Stripe.

#[cfg(feature = "postgres")]
mod events;
mod subscriptions;

#[cfg(feature = "postgres")]
pub use events::StripeEvents;
pub use subscriptions::StripeSubscriptions;

use serde::Deserialize;

use super::client::{Api, Authorization};
use crate::provider::Secret;

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    has_more: bool,
}

fn api(key: Secret) -> Api {
    Api::new("https://api.stripe.com", Authorization::Bearer(key))
}
