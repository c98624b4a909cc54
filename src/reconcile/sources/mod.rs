//! The lists of providers, by their APIs.

mod chargebee;
mod github;
mod list;
mod paddle;
mod stripe;
mod workos;

pub use chargebee::ChargebeeEvents;
pub use github::GitHubDeliveries;
pub use paddle::PaddleNotifications;
pub use stripe::StripeEvents;
pub use workos::WorkOsEvents;
