//! Presets: how well-known providers sign, identify and redeliver their webhooks.
//!
//! Each function takes the secrets and returns a [`Provider`](crate::Provider), whose settings can
//! be adjusted. Its documentation says what the provider signs and where the facts come from.
//!
//! ```
//! use idempotent_webhook::{Secret, presets};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let github = presets::github(Secret::new("It's a Secret to Everybody")?);
//! assert!(!github.signs_delivery_id());
//! # Ok(())
//! # }
//! ```

mod awardee;
mod github;
mod linear;
mod shopify;
mod slack;
mod standard_webhooks;
mod stripe;

pub use awardee::awardee;
pub use github::github;
pub use linear::linear;
pub use shopify::shopify;
pub use slack::slack;
pub use standard_webhooks::{standard_webhooks, svix};
pub use stripe::stripe;
