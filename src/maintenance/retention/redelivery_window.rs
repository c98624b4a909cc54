//! The redelivery windows of endpoints: for how long their providers may redeliver. Deliveries that are younger than
//! the window are not deleted. Claims register the windows (`transaction/registration.rs`). The lengths are in the
//! presets, and the default is in `provider/custom.rs`.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;

use crate::transaction::ShortTx;

/// The longest window. An endpoint that has claimed nothing for longer than its window and a day gets no redeliveries
/// any more, so its window does not count.
const LONGEST: &str = "
    select endpoint, extract(epoch from redelivery_window)::float8
    from idempotent_webhook.redelivery_windows
    where registered_at > now() - redelivery_window - interval '1 day'
    order by redelivery_window desc
    limit 1
";

const ALL: &str = "
    select endpoint, extract(epoch from max(redelivery_window))::float8
    from idempotent_webhook.redelivery_windows
    group by endpoint
    order by endpoint
";

/// The time for which the provider of an endpoint may redeliver.
pub(super) struct RedeliveryWindow {
    pub(super) endpoint: Arc<str>,
    pub(super) length: Duration,
}

impl RedeliveryWindow {
    /// The minimum age of rows to delete: `age`, or the window if it is longer.
    pub(super) fn age_limit(&self, age: Duration) -> Duration {
        // If the claim of a delivery were deleted within the window, the provider could still send the delivery again,
        // and it would have two effects.
        age.max(self.length)
    }
}

/// The longest window in which a provider may still redeliver, if it is longer than `age`.
pub(super) async fn longer_than(
    age: Duration,
    pool: &PgPool,
) -> sqlx::Result<Option<RedeliveryWindow>> {
    let longest = read(pool, LONGEST).await?.into_iter().next();
    Ok(longest.filter(|window| age < window.length))
}

/// The longest window of each endpoint.
pub(super) async fn all(pool: &PgPool) -> sqlx::Result<Vec<RedeliveryWindow>> {
    read(pool, ALL).await
}

async fn read(pool: &PgPool, statement: &'static str) -> sqlx::Result<Vec<RedeliveryWindow>> {
    // This runs in a transaction, because outside of one, PgBouncer may prepare a statement on one connection and run
    // it on another.
    let windows: Vec<(Arc<str>, f64)> = ShortTx::run(pool, async |tx| {
        sqlx::query_as(statement).fetch_all(tx).await
    })
    .await?;
    let read = |(endpoint, seconds)| RedeliveryWindow {
        endpoint,
        length: Duration::from_secs_f64(seconds),
    };
    Ok(windows.into_iter().map(read).collect())
}
