//! Reconciliation: what a provider has sent, or tried to, is compared with what was processed, and what is
//! missing is run. [`documentation::reconciliation`](crate::documentation::reconciliation) says how.

mod error;
mod handle;
mod missing;
mod position;
mod round;
mod source;
#[cfg(feature = "reqwest")]
mod sources;

pub use error::ReconcileError;
pub use handle::{Reconcile, ReconcileTask};
pub use round::{MissingDelivery, Reconciled};
pub use source::{EventPage, EventSource, ListedEvent, PageQuery, SourceError};
#[cfg(feature = "reqwest")]
pub use sources::{
    ChargebeeEvents, GitHubDeliveries, Http, PaddleNotifications, StripeEvents, WorkOsEvents,
};
