//! How many event types of an endpoint are new or have stopped, for the metrics of each process: also where nothing is kept,
//! so that no recovery looks for problems. What is new or stopped is decided by `event_type_problems` in
//! `migrations/0003_operation.sql`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::Row;
use tokio::runtime::Handle;

use crate::background::{guarded, spawn_once};
use crate::event_types::WantedEvents;
use crate::metrics::Metrics;
use crate::recovery::Problem;
use crate::transaction::{DatabaseError, Store};

const NAME: &str = "event types";

/// How often they are counted.
const INTERVAL: Duration = Duration::from_secs(30);

const COUNT: &str = "
    select count(*) filter (where problem = $2) as new, count(*) filter (where problem = $3) as stopped
    from idempotent_webhook.event_type_problems(array[$1])
";

/// Tells the metrics for as long as the table of types is there.
pub(crate) fn report_types(
    endpoint: &Arc<str>,
    store: &Store,
    metrics: &Metrics,
    events: &Arc<WantedEvents>,
) {
    // A router may be built before there is a runtime.
    if Handle::try_current().is_err() {
        return;
    }
    let (endpoint, store, metrics) = (endpoint.clone(), store.clone(), metrics.clone());
    let events = Arc::downgrade(events);
    spawn_once(NAME, async move {
        while is_there(&events).await && !store.pool().is_closed() {
            let reported = guarded(NAME, report(&endpoint, &store, &metrics)).await;
            if let Some(Err(error)) = reported {
                tracing::debug!(%error, "could not count the event types of a webhook endpoint");
            }
        }
    });
}

/// Whether the table is there after the wait.
async fn is_there(events: &Weak<WantedEvents>) -> bool {
    tokio::time::sleep(INTERVAL).await;
    events.strong_count() > 0
}

async fn report(endpoint: &str, store: &Store, metrics: &Metrics) -> Result<(), DatabaseError> {
    let count = || {
        sqlx::query(COUNT)
            .bind(endpoint)
            .bind(Problem::NewEventType.as_str())
            .bind(Problem::EventTypeStopped.as_str())
    };
    let rows = store.run(count).await?;
    if let Some(row) = rows.first() {
        metrics.event_types("new", row.try_get("new")?);
        metrics.event_types("stopped", row.try_get("stopped")?);
    }
    Ok(())
}
