//! Says in the database which endpoints are recovered by some process, for operators.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;

use super::served::Served;
use crate::transaction::{DatabaseError, Store};

const INTERVAL: Duration = Duration::from_secs(30);

/// An endpoint that has not been served for this long is handled by nobody, in seconds.
#[cfg(feature = "dashboard")]
pub(crate) const ABSENT_AFTER: f64 = 120.0;

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

/// When this process last said so.
#[derive(Debug, Default)]
pub(super) struct Presence(Option<Instant>);

impl Presence {
    /// Says so, unless it has been said lately.
    pub(super) async fn tell(&mut self, store: &Store, pool: &PgPool) -> Result<(), DatabaseError> {
        if self.0.is_some_and(|told| told.elapsed() < INTERVAL) {
            return Ok(());
        }
        let served = Served::on(pool);
        if !served.is_empty() {
            let endpoints: Vec<&str> = served.iter().map(|served| &*served.endpoint).collect();
            store.run(sqlx::query(SERVE).bind(endpoints)).await?;
        }
        self.0 = Some(Instant::now());
        Ok(())
    }
}
