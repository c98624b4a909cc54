//! Reads the subscription of an endpoint from the provider's API, and compares it with the event types for which the
//! layer has handlers. It only reads from the provider.
//! [`documentation::subscriptions`](crate::documentation::subscriptions) explains how.

mod address;
#[cfg(feature = "postgres")]
mod check;
mod compare;
mod difference;
mod error;
#[cfg(feature = "postgres")]
mod position;
mod source;
#[cfg(feature = "postgres")]
mod task;

#[cfg(feature = "postgres")]
pub use check::Subscriptions;
pub use compare::ExpectedSubscription;
pub use difference::{Difference, SubscriptionReport};
pub use error::SubscriptionError;
pub use source::{Subscription, SubscriptionSource};
#[cfg(feature = "postgres")]
pub use task::SubscriptionsTask;

// The built-in lists. Nothing in this module needs them.
#[cfg(feature = "reqwest")]
pub use crate::provider_api::clients::{
    GitHubSubscriptions, Http, PaddleSubscriptions, ShopifySubscriptions, StripeSubscriptions,
    WorkOsSubscriptions,
};
pub use crate::provider_api::source_error::SourceError;
