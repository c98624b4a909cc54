//! The lists of providers, by their APIs.

mod api;
mod chargebee;
mod github;
mod paddle;
mod stripe;
mod workos;

pub use api::Http;
pub use chargebee::ChargebeeEvents;
pub use github::GitHubDeliveries;
pub use paddle::PaddleNotifications;
pub use stripe::StripeEvents;
pub use workos::WorkOsEvents;
