//! The APIs of providers: their lists of events and of subscriptions. One folder or file for each provider.
//!
//! Each list implements its trait as an application would, and uses the client. Nothing else in the crate needs them.

#[cfg(feature = "postgres")]
mod chargebee;
mod client;
mod github;
#[cfg(feature = "postgres")]
mod items;
mod paddle;
mod pages;
mod shopify;
mod stripe;
mod workos;

#[cfg(feature = "postgres")]
pub use chargebee::ChargebeeEvents;
pub use client::Http;
#[cfg(feature = "postgres")]
pub use github::GitHubDeliveries;
pub use github::GitHubSubscriptions;
#[cfg(feature = "postgres")]
pub use paddle::PaddleNotifications;
pub use paddle::PaddleSubscriptions;
pub use shopify::ShopifySubscriptions;
#[cfg(feature = "postgres")]
pub use stripe::StripeEvents;
pub use stripe::StripeSubscriptions;
#[cfg(feature = "postgres")]
pub use workos::WorkOsEvents;
pub use workos::WorkOsSubscriptions;
