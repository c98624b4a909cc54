//! Reconciliation: what a provider has sent, or tried to, is compared with what was processed, and what is
//! missing is run. [`documentation::reconciliation`](crate::documentation::reconciliation) says how.

mod error;
mod event_source;
mod missing;
mod position;
mod round;
#[cfg(feature = "reqwest")]
mod sources;
mod task;

pub use error::ReconcileError;
pub use event_source::{EventPage, EventSource, ListedEvent, PageQuery, SourceError};
pub use round::{MissingDelivery, Reconciled};
#[cfg(feature = "reqwest")]
pub use sources::{
    ChargebeeEvents, GitHubDeliveries, Http, PaddleNotifications, StripeEvents, WorkOsEvents,
};
pub use task::{Reconcile, ReconcileTask};
