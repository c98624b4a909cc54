//! The APIs of providers: what they list of events, and of subscriptions. A folder or file a provider.
//!
//! Each list uses the trait that it implements as applications do, and the client. Nothing else of the crate needs them.

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
