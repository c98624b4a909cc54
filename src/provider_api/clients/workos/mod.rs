//! The API of WorkOS.

#[cfg(feature = "postgres")]
mod events;
mod subscriptions;

#[cfg(feature = "postgres")]
pub use events::WorkOsEvents;
pub use subscriptions::WorkOsSubscriptions;

use serde::Deserialize;

use super::client::{Api, Authorization};
use crate::provider::Secret;

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    list_metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    after: Option<String>,
}

fn api(key: Secret) -> Api {
    Api::new("https://api.workos.com", Authorization::Bearer(key))
}
