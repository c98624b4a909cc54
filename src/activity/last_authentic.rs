//! The last authentic request that any process has had, for the metrics of each: what one process has had alone is not
//! silence, also after the end of that process.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use tokio::runtime::Handle;

use crate::background::{guarded, spawn_once};
use crate::metrics::{Metrics, unix_now};
use crate::transaction::{DatabaseError, Store};

const NAME: &str = "last authentic request";

/// How often it is read.
const INTERVAL: Duration = Duration::from_secs(30);

/// The newest hour comes first, by the key.
const LAST_AUTHENTIC: &str = "
    select extract(epoch from max(last_at))::float8 as at
    from (
        select last_at
        from idempotent_webhook.activity
        where endpoint = $1 and source = 'request' and outcome not in ('handshake', 'rejected')
        order by hour desc
        -- As many as there are outcomes in an hour, and more.
        limit 100
    ) as newest
";

/// Tells the metrics when the last authentic request came, for as long as the layer is there. If there was none, it is when
/// the database was first read, so that an endpoint that nobody sends to is noticed, too.
pub(crate) fn report_last_authentic(endpoint: &Arc<str>, store: &Store, metrics: &Metrics) {
    // A router may be built before there is a runtime. Then the first request tells.
    if Handle::try_current().is_err() {
        return;
    }
    let (endpoint, store, metrics) = (endpoint.clone(), store.clone(), metrics.clone());
    spawn_once(NAME, async move {
        let mut is_first = true;
        while !metrics.is_alone() && !store.pool().is_closed() {
            let read = guarded(NAME, last_authentic(&endpoint, &store)).await;
            if let Some(Ok(at)) = read {
                if let Some(at) = at.or(is_first.then(unix_now)) {
                    metrics.authentic(at);
                }
                is_first = false;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

/// In Unix seconds, by the clock of the database.
async fn last_authentic(endpoint: &str, store: &Store) -> Result<Option<u64>, DatabaseError> {
    let rows = store
        .run(|| sqlx::query(LAST_AUTHENTIC).bind(endpoint))
        .await?;
    let at = match rows.first() {
        Some(row) => row.try_get::<Option<f64>, _>("at")?,
        None => None,
    };
    Ok(at.map(|at| at as u64))
}
