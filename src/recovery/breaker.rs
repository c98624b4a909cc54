//! The breaker of an endpoint. It opens after many failures in a row (`kept/fail.sql`). While it is open,
//! attempts are probes, one at a time. The next success closes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::PgRow;

use super::kept_request::FORMAT;
use super::liveness::Taker;
use super::served_endpoints::Served;
use crate::pg_time::interval;
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

/// The breaker as this process knows it.
#[derive(Debug, Default)]
pub(super) struct BreakerState {
    /// Whether attempts have failed since the last success.
    has_failures: AtomicBool,
    /// Whether it was open when it was last looked at.
    is_open: AtomicBool,
}

impl Served {
    /// An attempt has failed.
    pub(crate) fn note_failure(&self) {
        self.breaker_state
            .has_failures
            .store(true, Ordering::Relaxed);
    }

    /// Whether attempts have failed since the last success. Only the first caller gets to know, who
    /// closes the breaker.
    pub(crate) fn take_failures(&self) -> bool {
        self.breaker_state.has_failures.load(Ordering::Relaxed)
            && self
                .breaker_state
                .has_failures
                .swap(false, Ordering::Relaxed)
    }

    /// Whether the breaker is open, as the database has it.
    pub(super) fn set_open(&self, is_open: bool) {
        let endpoint = &*self.endpoint;
        if self.breaker_state.is_open.swap(is_open, Ordering::Relaxed) == is_open {
            return;
        }
        if is_open {
            tracing::warn!(
                endpoint,
                "webhook recovery probes this endpoint: too many deliveries have failed in a row, so \
                 the others wait without using up attempts"
            );
        } else {
            tracing::info!(endpoint, "webhook recovery probes this endpoint no longer");
        }
    }
}

impl Store {
    /// Closes the breaker of an endpoint.
    pub(crate) async fn close_breaker(&self, endpoint: &str) -> Result<(), DatabaseError> {
        let statement = || sqlx::query(include_str!("kept/close_breaker.sql")).bind(endpoint);
        self.run_on_any(statement).await.map(drop)
    }

    /// Takes one delivery of an endpoint whose breaker is open, if it is time for it.
    pub(super) async fn probe(
        &self,
        served: &Served,
        taker: &Taker,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        let statement = sqlx::query(include_str!("kept/probe.sql"))
            .bind(&*served.endpoint)
            .bind(interval(served.breaker.probe_interval))
            .bind(FORMAT)
            .bind(taker.number());
        self.run(statement).await
    }
}
