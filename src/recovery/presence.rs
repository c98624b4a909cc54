//! Says in the database which endpoints are recovered by some process, for operators and for processes
//! that only keep deliveries.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgPool, Row};
use tokio::sync::watch;

use super::runner::{asked, race};
use super::served::Served;
use crate::transaction::{DatabaseError, Store};

const INTERVAL: Duration = Duration::from_secs(30);

/// An endpoint that has not been served for this long is handled by nobody, in seconds.
pub(crate) const ABSENT_AFTER: f64 = 120.0;

/// How long a process that has kept its first delivery waits for another one to say so.
const PATIENCE: Duration = Duration::from_secs(10);

/// In the order of the key, so that two processes do not wait for each other in a circle. Of many
/// processes, one writes.
const SERVE: &str = "
    insert into idempotent_webhook.kept_endpoints as known (endpoint, served_at)
    select endpoint, now()
    from unnest($1::text[]) as served (endpoint)
    order by endpoint
    on conflict (endpoint) do update
    set served_at = excluded.served_at
    where known.served_at is null or known.served_at < now() - interval '20 seconds'
";

/// Says so until recovery is asked to stop. Not between two attempts, which may take long.
pub(super) async fn tell(store: Store, pool: PgPool, mut stop: watch::Receiver<bool>) {
    loop {
        if let Err(error) = tell_once(&store, &pool).await {
            tracing::debug!(%error, "webhook recovery could not say what it serves");
        }
        let wait = async {
            tokio::time::sleep(INTERVAL).await;
            true
        };
        if !race(asked(&mut stop, false), wait).await {
            return;
        }
    }
}

async fn tell_once(store: &Store, pool: &PgPool) -> Result<(), DatabaseError> {
    let served = Served::on(pool);
    if !served.is_empty() {
        let endpoints: Vec<&str> = served.iter().map(|served| &*served.endpoint).collect();
        store.run(sqlx::query(SERVE).bind(endpoints)).await?;
    }
    Ok(())
}

const IS_SERVED: &str = "
    select exists (
        select
        from idempotent_webhook.kept_endpoints
        where endpoint = $1 and served_at > now() - make_interval(secs => $2)
    )
";

/// Warns if nobody recovers an endpoint of which a delivery was kept.
pub(super) async fn warn_if_absent(store: Store, endpoint: Arc<str>) {
    tokio::time::sleep(PATIENCE).await;
    let is_served = async {
        let statement = sqlx::query(IS_SERVED).bind(&*endpoint).bind(ABSENT_AFTER);
        let rows = store.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok::<bool, DatabaseError>(row.try_get(0)?)
    };
    match is_served.await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(
            endpoint = &*endpoint,
            "webhook deliveries are kept, but no process runs them again: spawn `Recovery` with the \
             router that has this endpoint"
        ),
        Err(error) => tracing::debug!(%error, "could not see who recovers a webhook endpoint"),
    }
}
