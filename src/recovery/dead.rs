//! When a delivery becomes dead, and how that is reported. A dead delivery waits for an operator.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;

use super::hook::{self, Telling};
use super::kept::KeptState;
use super::shared::Shared;
use super::taken::StoredDelivery;
use crate::activity::counts::Counts;
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::pg_time::interval;
use crate::transaction::{DatabaseError, Store, keyed};

/// Called with a dead delivery, and the reason why its last attempt failed.
pub(super) type OnDead = Arc<dyn Fn(&Delivery, &str) + Send + Sync>;

/// The state after a failed attempt. Without a next attempt, the delivery is dead, because the schedule has ended
/// or the handler has decided so.
pub(super) fn state_after_failure(next_attempt: Option<Duration>) -> KeptState {
    match next_attempt {
        Some(_) => KeptState::Due,
        None => KeptState::Dead,
    }
}

/// Where a layer reports its dead deliveries.
#[derive(Clone)]
pub(crate) struct DeadReport {
    pub(crate) provider: Arc<str>,
    pub(crate) counts: Counts,
    pub(crate) store: Store,
    pub(crate) hook: Option<OnDead>,
}

impl DeadReport {
    /// Reports a dead delivery. `takes` is the take number of its row when it died.
    pub(crate) async fn send(&self, delivery: &Delivery, reason: &str, takes: i64) {
        self.note(delivery, reason);
        self.call_hook(delivery, reason, takes).await;
    }

    /// Logs and counts a dead delivery.
    pub(crate) fn note(&self, delivery: &Delivery, reason: &str) {
        self.counts.dead();
        tracing::error!(
            endpoint = delivery.endpoint(),
            delivery_id = delivery.id().as_str(),
            reason,
            "webhook dead: it does not run again unless an operator retries it"
        );
    }

    /// Calls the hook, if there is one. The write that made the delivery dead has reserved the call for this
    /// process for some time. In a database that belongs to another environment, no hook is called.
    pub(crate) async fn call_hook(&self, delivery: &Delivery, reason: &str, takes: i64) {
        let Some(on_dead) = self.hook.clone() else {
            return;
        };
        if !matches!(self.store.is_home().await, Ok(true)) {
            return;
        }
        let (dead, reason) = (delivery.clone(), reason.to_owned());
        if !hook::call("on_dead", move || on_dead(&dead, &reason)).await {
            return;
        }
        let told = || keyed(include_str!("kept/told_death.sql"), delivery).bind(takes);
        if let Err(error) = self.store.run(told).await {
            tracing::debug!(%error, "could not record that a dead webhook was reported; it is reported again");
        }
    }
}

/// Reports the dead deliveries that were not reported by the processes which made them dead.
pub(super) async fn tell_untold(shared: &Shared, stop: &Stop) -> Result<(), DatabaseError> {
    let served = shared.endpoints.all();
    let reports: Vec<(&str, DeadReport)> = served
        .iter()
        .map(|served| (&*served.endpoint, served.dead_report()))
        .filter(|(_, report)| report.hook.is_some())
        .collect();
    let endpoints: Vec<&str> = reports.iter().map(|(endpoint, _)| *endpoint).collect();
    if endpoints.is_empty() {
        return Ok(());
    }
    let telling = Telling::begin(stop);
    let environment = shared.store.environment().name();
    while !telling.is_over() {
        let next = || {
            sqlx::query(include_str!("kept/tell_death.sql"))
                .bind(&endpoints)
                .bind(interval(hook::TELLING))
                .bind(environment.as_deref())
        };
        let rows = shared.store.run(next).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let endpoint: &str = row.try_get("endpoint")?;
        let Some((_, report)) = reports.iter().find(|(name, _)| *name == endpoint) else {
            return Ok(());
        };
        let delivery =
            StoredDelivery::read(row, endpoint.into())?.delivery(report.provider.clone());
        let reason: Option<String> = row.try_get("reason")?;
        report
            .call_hook(
                &delivery,
                &reason.unwrap_or_default(),
                row.try_get("takes")?,
            )
            .await;
    }
    Ok(())
}

impl fmt::Debug for DeadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadReport").finish_non_exhaustive()
    }
}
