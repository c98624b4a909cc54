//! The breaker of an endpoint. It opens after many failures in a row (`kept/fail.sql`). While it is open, attempts
//! are probes, one in each interval: a process moves the time of the next probe (`kept/start_probe.sql`), and takes
//! the one delivery that has been due longest (`kept/take.sql`). A delivery whose probe has failed is due later, so
//! the next probe tries another delivery. The next success closes the breaker.

use std::time::Duration;

use crate::transaction::pg_time::interval;
use crate::transaction::{DatabaseError, Store};

/// When the breaker opens, and how often it probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaker {
    /// After this many failures in a row, attempts are probes.
    pub(super) failures: i32,
    /// The time between two probes.
    pub(super) probe_interval: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 10,
            probe_interval: Duration::from_secs(30),
        }
    }
}

/// The most failures in a row that `failed_ids` can count (`kept/fail.sql`).
const MAX_FAILURES: i32 = 1000;

impl Breaker {
    /// Limits `failures`, so that the breaker can open.
    pub(super) fn within_bounds(self) -> Self {
        Self {
            failures: self.failures.min(MAX_FAILURES),
            ..self
        }
    }
}

impl Store {
    /// Closes the breaker of an endpoint.
    pub(crate) async fn close_breaker(&self, endpoint: &str) -> Result<(), DatabaseError> {
        let statement = || sqlx::query(include_str!("kept/close_breaker.sql")).bind(endpoint);
        self.run(statement).await.map(drop)
    }

    /// Whether this process may now probe an endpoint whose breaker is open.
    pub(super) async fn start_probe(
        &self,
        endpoint: &str,
        breaker: Breaker,
    ) -> Result<bool, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("kept/start_probe.sql"))
                .bind(endpoint)
                .bind(interval(breaker.probe_interval))
        };
        Ok(!self.run(statement).await?.is_empty())
    }
}
