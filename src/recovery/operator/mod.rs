//! The operations of operators on kept deliveries. An operation is applied to the keys of rows (`operation.rs`): to all
//! keys that match a filter (`bulk.rs`), or to one key.

mod adopt;
mod bulk;
mod endpoint;
mod filter;
mod forget;
mod list;
mod newest;
mod operation;

use sqlx::{PgConnection, PgPool};

use crate::transaction::{RowKeys, ShortTx};
pub use adopt::adopt;
#[cfg(feature = "dashboard")]
pub(crate) use adopt::adopt_by;
#[cfg(feature = "dashboard")]
pub(crate) use bulk::BATCH;
pub(crate) use bulk::Bulk;
pub use bulk::Changes;
pub use endpoint::Endpoint;
pub use filter::Filter;
pub use list::KeptDelivery;
#[cfg(feature = "dashboard")]
pub(crate) use list::count;
pub(crate) use list::list;
pub(crate) use newest::{Chosen, newest};
pub(crate) use operation::{Applied, Operation, Running, in_transaction};

/// Waits for each transaction that changes the rows of these deliveries, such as a reprocess.
const LOCK_KEPT: &str = "
    select 1
    from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[key.endpoint])
            and kept.tenant = key.tenant
            and kept.delivery_id = key.delivery_id
    order by kept.tenant, kept.delivery_id
    for update of kept
";

#[cfg(feature = "dashboard")]
const ARCHIVED: &str = "
    select key.tenant, key.delivery_id
    from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[key.endpoint])
            and kept.tenant = key.tenant
            and kept.delivery_id = key.delivery_id
    where kept.state not in ('recorded', 'due', 'dead')
    order by kept.tenant, kept.delivery_id
    for update of kept
";

const PROCESSED: &str = "
    select key.tenant, key.delivery_id
    from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
    join idempotent_webhook.deliveries as claim
        on claim.delivery_id = any (array[key.delivery_id])
            and claim.endpoint = key.endpoint
            and claim.tenant = key.tenant
";

/// The result of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retried {
    /// It is due now, with a new schedule.
    Due,
    /// It was processed meanwhile, so there is nothing to do.
    Processed,
    /// There is no such delivery that could be run again, or it is due or running already.
    Unchanged,
}

/// The result of a discard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Discarded {
    /// Its row is gone, and it does not run again.
    Discarded,
    /// It was processed, so there is nothing to discard.
    Processed,
    /// The delivery is not kept.
    NotKept,
}

/// The result of a reprocess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reprocessed {
    /// It is due now, with a new schedule.
    Due,
    /// It was not processed, or has been deleted since.
    NotProcessed,
    /// It was processed, and its request is not archived.
    NotKept,
}

/// The deliveries that an operation can reach: all deliveries of an endpoint, or only those of one tenant.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) tenant: Option<&'a str>,
}

/// The result of an operation on one delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) enum One {
    Changed,
    /// Nothing has changed, and the delivery is processed.
    Processed,
    Unchanged,
}

/// Applies an operation to one delivery, in a transaction that was [started](in_transaction) for it. A discard and an
/// erasure wait for a running attempt at the delivery. A retry does not.
pub(crate) async fn apply_to_one(
    operation: Operation,
    scope: Scope<'_>,
    delivery_id: &str,
    tx: &mut PgConnection,
) -> sqlx::Result<One> {
    let keys = RowKeys::one(scope.tenant.unwrap_or_default(), delivery_id);
    let running = match operation {
        // A delivery that was processed meanwhile must not run.
        Operation::Retry if is_processed(&keys, scope.endpoint, tx).await? => {
            return Ok(One::Processed);
        }
        Operation::Retry => Running::IsLeft,
        Operation::Discard | Operation::Erase => Running::IsAwaited,
        Operation::Reprocess => Running::HoldsRow,
    };
    let applied = apply_to(operation, &keys, scope.endpoint, running, tx).await?;
    Ok(if !applied.changed.is_empty() {
        One::Changed
    } else if is_processed(&keys, scope.endpoint, tx).await? {
        One::Processed
    } else {
        One::Unchanged
    })
}

/// Applies an operation to these deliveries, no matter when they came.
pub(crate) async fn apply_to(
    operation: Operation,
    keys: &RowKeys,
    endpoint: &str,
    running: Running,
    tx: &mut PgConnection,
) -> sqlx::Result<Applied> {
    let scope = Scope {
        endpoint,
        tenant: None,
    };
    let all = Filter::new();
    operation.apply(scope, &all, keys, running, tx).await
}

async fn rows(
    sql: &'static str,
    keys: &RowKeys,
    endpoint: &str,
    tx: &mut PgConnection,
) -> sqlx::Result<RowKeys> {
    let rows = keys.bind(sqlx::query(sql), endpoint).fetch_all(tx).await?;
    RowKeys::read(&rows)
}

/// Whether at least one of these deliveries is processed.
pub(crate) async fn is_processed(
    keys: &RowKeys,
    endpoint: &str,
    tx: &mut PgConnection,
) -> sqlx::Result<bool> {
    Ok(!rows(PROCESSED, keys, endpoint, tx).await?.is_empty())
}

/// Deletes the claims of processed deliveries, and also their kept rows, which must not run again by themselves.
/// Returns the deliveries that had a claim.
pub(crate) async fn forget(
    keys: &RowKeys,
    endpoint: &str,
    tx: &mut PgConnection,
) -> sqlx::Result<RowKeys> {
    let processed = rows(PROCESSED, keys, endpoint, tx).await?;
    // No attempt holds these rows for long, because the deliveries are processed.
    let lock = sqlx::query(LOCK_KEPT);
    processed.bind(lock, endpoint).execute(&mut *tx).await?;
    let forgotten = processed.delete_claims(endpoint, None, &mut *tx).await?;
    if !forgotten.is_empty() {
        // A processed delivery can still have a kept row, if it was kept as a failure although its commit went through.
        // Without this delete, recovery would run the forgotten delivery by itself. The row is deleted as by a discard,
        // so reconciliation leaves the delivery alone.
        Operation::Discard.write(&forgotten, endpoint, tx).await?;
    }
    Ok(forgotten)
}

/// Forgets only the deliveries whose requests are not archived: a delivery with an archived request can be
/// reprocessed.
#[cfg(feature = "dashboard")]
pub(crate) async fn forget_unless_archived(
    keys: &RowKeys,
    endpoint: &str,
    tx: &mut PgConnection,
) -> sqlx::Result<Applied> {
    let mut gone = keys.clone();
    gone.remove(&rows(ARCHIVED, keys, endpoint, tx).await?);
    Ok(Applied {
        changed: forget(&gone, endpoint, tx).await?,
        running: 0,
    })
}

pub(crate) async fn pause(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, include_str!("../kept/pause.sql"), endpoint).await
}

pub(crate) async fn resume(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, include_str!("../kept/resume.sql"), endpoint).await
}

async fn on_endpoint(pool: &PgPool, statement: &'static str, endpoint: &str) -> sqlx::Result<()> {
    ShortTx::run(pool, async |tx| {
        let changed = sqlx::query(statement).bind(endpoint);
        changed.execute(tx).await.map(drop)
    })
    .await
}
