//! The API of GitHub.

#[cfg(feature = "postgres")]
mod events;
mod subscriptions;

#[cfg(feature = "postgres")]
pub use events::GitHubDeliveries;
pub use subscriptions::GitHubSubscriptions;

use http::HeaderName;

use super::client::{Api, Authorization};

fn api(authorization: Authorization) -> Api {
    let version = HeaderName::from_static("x-github-api-version");
    Api::new("https://api.github.com", authorization).header(version, "2022-11-28")
}
