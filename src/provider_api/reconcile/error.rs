//! Why a list cannot be reconciled.

use std::error::Error;
use std::fmt;

use crate::provider_api::source_error::SourceError;
use crate::tasks_and_errors::error_chain::BoxError;
use crate::transaction::{DatabaseError, hint};

/// Why a list of events cannot be reconciled, or a round of it has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The layer keeps no deliveries ([`keep`](crate::IdempotentWebhook::keep)), so nothing would run them.
    NothingKept,
    /// The text is not the path of a route.
    Path(String),
    /// The list lacks a header or the body that the provider's delivery id is made of. A webhook that still arrives
    /// would be another delivery.
    Identity(String),
    /// This process reconciles a list of this name at the endpoint already.
    ///
    /// Another list needs a name of its own: see `StripeEvents::named`. Another use of the same list takes a clone of
    /// its [`Reconcile`](crate::Reconcile).
    NameTaken(String),
    /// The path belongs to no tenant, or its secrets could not be looked up.
    Tenant(BoxError),
    /// Another process reconciles the list now.
    Busy,
    /// The list could not be read. The reason is the whole chain of errors, as it is logged and stored.
    Source(SourceError),
    /// The [`quota`](crate::Keep::quota) of the endpoint is exhausted.
    QuotaExhausted,
    /// Postgres.
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
            Self::Identity(reason) => write!(f, "it cannot be reconciled: {reason}"),
            Self::NameTaken(name) => write!(
                f,
                "the list {name:?} of the endpoint is reconciled already: give another list a name of its own, or \
                 clone the `Reconcile` to use the same list again"
            ),
            Self::Tenant(_) => f.write_str("there is no tenant with secrets for the path"),
            Self::Busy => f.write_str("another process reconciles the list now, or the database is of another environment"),
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
