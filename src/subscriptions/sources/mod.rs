//! The subscriptions of providers, by their APIs.

mod github;
mod paddle;
mod pages;
mod shopify;
mod stripe;
mod workos;

pub use github::GitHubSubscriptions;
pub use paddle::PaddleSubscriptions;
pub use shopify::ShopifySubscriptions;
pub use stripe::StripeSubscriptions;
pub use workos::WorkOsSubscriptions;
