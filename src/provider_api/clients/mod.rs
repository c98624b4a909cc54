//! Clients for the APIs of the built-in providers: their lists of events and of subscriptions. Each provider has a
//! folder or a file.
//!
//! Each list implements `EventSource` or `SubscriptionSource`, as an application would, and makes its requests through
//! `client.rs`. Nothing else in the crate needs these lists.

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
