//! Problems of endpoints, each told once when it begins and once when it is over, by one of all processes.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::panic::{self, catch_panic};
use crate::pg_time::from_unix_time;
use crate::transaction::{DatabaseError, Store};

/// Called with each change.
pub(super) type OnChange = Arc<dyn Fn(&EndpointChange) + Send + Sync>;

/// What is wrong with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Deliveries have failed, and wait for another attempt, for an operator or for their provider.
    Failing,
    /// Many failed in a row, so that one delivery is tried at a time: the [breaker](crate::Keep::breaker) is open.
    Probing,
    /// Deliveries that were run again have reached no layer of the endpoint.
    Unreached,
    /// [`Reconcile`](crate::Reconcile) has failed, has left something out, or is late by more than an hour.
    NotReconciled,
}

impl Problem {
    /// The name in the log, such as `not reconciled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Probing => "probing",
            Self::Unreached => "unreached",
            Self::NotReconciled => "not reconciled",
        }
    }

    fn read(text: &str) -> sqlx::Result<Self> {
        Ok(match text {
            "failing" => Self::Failing,
            "probing" => Self::Probing,
            "unreached" => Self::Unreached,
            "not reconciled" => Self::NotReconciled,
            other => {
                let unknown = format!("an endpoint has the unknown problem {other:?}");
                return Err(sqlx::Error::Decode(unknown.into()));
            }
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A problem of an endpoint has begun, or is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointChange {
    /// The endpoint.
    pub endpoint: String,
    /// What is wrong, or was.
    pub problem: Problem,
    /// When it was seen first.
    pub since: SystemTime,
    /// Whether it is over.
    pub is_over: bool,
}

impl EndpointChange {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            endpoint: row.try_get("endpoint")?,
            problem: Problem::read(row.try_get("problem")?)?,
            since: from_unix_time(row.try_get("since")?),
            is_over: row.try_get("is_over")?,
        })
    }

    fn log(&self) {
        let (endpoint, problem) = (&*self.endpoint, self.problem.as_str());
        if self.is_over {
            let seconds = self.since.elapsed().unwrap_or_default().as_secs();
            tracing::info!(endpoint, problem, seconds, "webhook problem over");
        } else {
            tracing::warn!(endpoint, problem, "webhook problem");
        }
    }
}

/// Looks at endpoints, and tells what has changed since some process has looked.
pub(super) async fn tell_changes(
    store: &Store,
    endpoints: &[&str],
    on_change: Option<&OnChange>,
) -> Result<(), DatabaseError> {
    let look = sqlx::query(include_str!("kept/problems.sql")).bind(endpoints);
    for row in store.run(look).await? {
        let change = EndpointChange::read(&row)?;
        change.log();
        if let Some(hook) = on_change
            && let Err(payload) = catch_panic(async { hook(&change) }).await
        {
            let message = panic::message(&*payload);
            tracing::error!(
                message,
                "the hook for problems of webhook endpoints panicked"
            );
        }
    }
    Ok(())
}
