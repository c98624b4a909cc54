//! The metrics of a layer that cover all processes, read from the database: when the last authentic request arrived,
//! and how many event types are new or have stopped. An authentic request counts regardless of which process received
//! it, even if that process no longer runs. Event types are reported even if nothing is kept and no recovery looks for
//! problems. `event_type_problems` in `migrations/functions.sql` decides which types are new or have stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Activity;
use super::problem::Problem;
use crate::metrics::{Metrics, unix_now};
use crate::transaction::{DatabaseError, Store};

/// Reads the metrics of the endpoints `$1`. The primary key gives an endpoint's rows from the newest hour on, so only
/// the first of them are read.
const READ: &str = "
    with types as materialized (
        select
            endpoint,
            count(*) filter (where problem = $2) as new,
            count(*) filter (where problem = $3) as stopped
        from idempotent_webhook.event_type_problems($1)
        group by endpoint
    )
    select
        known.endpoint,
        (
            select extract(epoch from max(newest.last_at))::float8
            from (
                select activity.last_at
                from idempotent_webhook.activity
                where activity.endpoint = known.endpoint
                    and activity.source = 'request'
                    and activity.outcome not in ('handshake', 'rejected')
                order by activity.hour desc
                -- An hour has fewer rows than this.
                limit 100
            ) as newest
        ) as last_authentic_at,
        coalesce(types.new, 0) as new,
        coalesce(types.stopped, 0) as stopped
    from unnest($1::text[]) as known (endpoint)
    left join types on types.endpoint = known.endpoint
";

/// The readings of a layer's metrics.
#[derive(Debug)]
pub(super) struct Readings {
    metrics: Metrics,
    last_authentic: AtomicBool,
    types: AtomicBool,
    /// Whether the last authentic request has been read at least once.
    has_begun: AtomicBool,
}

impl Readings {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            last_authentic: AtomicBool::new(false),
            types: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
        }
    }

    pub(super) fn tell_last_authentic(&self) {
        self.last_authentic.store(true, Ordering::Relaxed);
    }

    pub(super) fn tell_types(&self) {
        self.types.store(true, Ordering::Relaxed);
    }

    pub(super) fn tells_last_authentic(&self) -> bool {
        self.last_authentic.load(Ordering::Relaxed)
    }

    /// Whether anything is read for this layer.
    pub(super) fn are_wanted(&self) -> bool {
        self.tells_last_authentic() || self.types.load(Ordering::Relaxed)
    }

    /// Sets the metrics from a row. If there was no authentic request yet, the time of the first reading is used, so
    /// that an endpoint to which nobody sends is noticed as well.
    fn tell(&self, row: &PgRow) -> sqlx::Result<()> {
        if self.last_authentic.load(Ordering::Relaxed) {
            // In Unix seconds, by the clock of the database.
            let at: Option<f64> = row.try_get("last_authentic_at")?;
            let is_first = !self.has_begun.swap(true, Ordering::Relaxed);
            let at = at.map(|at| at as u64);
            if let Some(at) = at.or_else(|| is_first.then(unix_now)) {
                self.metrics.authentic(at);
            }
        }
        if self.types.load(Ordering::Relaxed) {
            self.metrics.event_types("new", row.try_get("new")?);
            self.metrics.event_types("stopped", row.try_get("stopped")?);
        }
        Ok(())
    }
}

/// Reads the metrics of these layers in one transaction, if they need any.
pub(super) async fn read(layers: &[Activity], store: &Store) -> Result<(), DatabaseError> {
    let layers = layers.iter().map(|layer| &*layer.0);
    let wanted: Vec<_> = layers.filter(|each| each.readings.are_wanted()).collect();
    let mut endpoints: Vec<&str> = wanted.iter().map(|each| &*each.endpoint).collect();
    endpoints.sort_unstable();
    endpoints.dedup();
    if endpoints.is_empty() {
        return Ok(());
    }
    let statement = || {
        sqlx::query(READ)
            .bind(&endpoints)
            .bind(Problem::NewEventType.as_str())
            .bind(Problem::EventTypeStopped.as_str())
    };
    for row in store.run(statement).await? {
        let endpoint: &str = row.try_get("endpoint")?;
        for layer in wanted.iter().filter(|each| &*each.endpoint == endpoint) {
            layer.readings.tell(&row)?;
        }
    }
    Ok(())
}
