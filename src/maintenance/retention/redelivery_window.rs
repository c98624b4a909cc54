//! The redelivery windows of endpoints, below which nothing is deleted.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;

use crate::transaction::ShortTx;

/// An endpoint that has claimed nothing for longer than its window gets no redeliveries.
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

/// An endpoint, and the time for which its provider may redeliver.
pub(super) type RedeliveryWindow = (Arc<str>, Duration);

/// The longest window in which a provider may still redeliver.
pub(super) async fn longest(pool: &PgPool) -> sqlx::Result<Option<RedeliveryWindow>> {
    Ok(read(pool, LONGEST).await?.into_iter().next())
}

/// The longest window of each endpoint.
pub(super) async fn all(pool: &PgPool) -> sqlx::Result<Vec<RedeliveryWindow>> {
    read(pool, ALL).await
}

async fn read(pool: &PgPool, statement: &'static str) -> sqlx::Result<Vec<RedeliveryWindow>> {
    // In a transaction, so that PgBouncer keeps the statement on one connection from its preparation
    // to its end.
    let mut tx = ShortTx::begin(pool).await?;
    let windows: Vec<(Arc<str>, f64)> = sqlx::query_as(statement).fetch_all(&mut *tx).await?;
    tx.commit().await?;
    let read = |(endpoint, seconds)| (endpoint, Duration::from_secs_f64(seconds));
    Ok(windows.into_iter().map(read).collect())
}
