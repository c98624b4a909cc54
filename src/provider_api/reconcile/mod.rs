//! Reconciliation: compares the events of a provider's list with the processed deliveries, and runs the missing ones.
//! [`documentation::reconciliation`](crate::documentation::reconciliation) explains how.

mod bounds;
mod error;
mod event_source;
mod missing;
mod position;
mod round;
pub(crate) mod settings;
mod task;

pub use error::ReconcileError;
pub use event_source::{EventPage, EventSource, ListedEvent, PageQuery};
pub use round::{MissingDelivery, Reconciled};
pub use task::ReconcileTask;

// The built-in lists. Nothing in this module needs them.
#[cfg(feature = "reqwest")]
pub use crate::provider_api::clients::{
    ChargebeeEvents, GitHubDeliveries, Http, PaddleNotifications, StripeEvents, WorkOsEvents,
};
pub use crate::provider_api::source_error::SourceError;
