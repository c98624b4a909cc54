//! Reconciliation: compares the events of a provider's list with the deliveries that were processed, and runs
//! the missing ones. [`documentation::reconciliation`](crate::documentation::reconciliation) says how.

mod bounds;
mod error;
mod event_source;
mod missing;
mod position;
mod round;
#[cfg(feature = "reqwest")]
mod sources;
pub(crate) mod settings;
mod task;

pub use error::ReconcileError;
pub use event_source::{EventPage, EventSource, ListedEvent, PageQuery};
pub use round::{MissingDelivery, Reconciled};
#[cfg(feature = "reqwest")]
pub use sources::{
    ChargebeeEvents, GitHubDeliveries, PaddleNotifications, StripeEvents, WorkOsEvents,
};
pub use task::ReconcileTask;

#[cfg(feature = "reqwest")]
pub use crate::provider_api::Http;
pub use crate::provider_api::SourceError;
