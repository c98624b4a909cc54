//! Why a list cannot be reconciled.

use std::error::Error;
use std::fmt;

use crate::provider_api::source_error::SourceError;
use crate::tasks_and_errors::error_chain::BoxError;
use crate::transaction::{DatabaseError, hint};

/// Why a list of events cannot be reconciled, or why a round of it failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The layer keeps no deliveries ([`keep`](crate::IdempotentWebhook::keep)), so nothing would run the missing ones.
    NothingKept,
    /// The text is not the path of a route.
    Path(String),
    /// The list lacks a header or the body from which the provider's delivery id is derived. If the webhook still
    /// arrived, it would count as another delivery.
    Identity(String),
    /// This process already reconciles a list with this name at the endpoint.
    ///
    /// Give another list its own name: see `StripeEvents::named`. To use the same list again, clone its
    /// [`Reconcile`](crate::Reconcile).
    NameTaken(String),
    /// The path belongs to no tenant, or the tenant's secrets could not be looked up.
    Tenant(BoxError),
    /// Another process is reconciling the list, or the database belongs to another environment.
    Busy,
    /// The list could not be read. The reason includes the whole chain of errors, as it is logged and stored.
    Source(SourceError),
    /// The [`quota`](crate::Keep::quota) of the endpoint is exhausted.
    QuotaExhausted,
    /// Postgres failed.
    Database(sqlx::Error),
}

impl From<DatabaseError> for ReconcileError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error.into())
    }
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingKept => f.write_str(
                "the layer keeps no deliveries, so nothing would run missing ones: give it a `Keep`",
            ),
            Self::Path(path) => write!(f, "{path:?} is not the path of a route"),
            Self::Identity(reason) => write!(f, "the list cannot be reconciled: {reason}"),
            Self::NameTaken(name) => write!(
                f,
                "the list {name:?} of the endpoint is reconciled already: give another list a name of its own, or \
                 clone the `Reconcile` to use the same list again"
            ),
            Self::Tenant(_) => f.write_str("there is no tenant with secrets for the path"),
            Self::Busy => f.write_str(
                "another process is reconciling the list, or the database belongs to another environment",
            ),
            Self::Source(error) => write!(f, "the provider's list: {error}"),
            Self::QuotaExhausted => {
                f.write_str("the quota of kept deliveries is exhausted (`Keep::quota`)")
            }
            Self::Database(error) => write!(f, "the database failed{}", hint(error)),
        }
    }
}

impl Error for ReconcileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Tenant(error) => Some(&**error),
            _ => None,
        }
    }
}
