//! What operators do with kept deliveries: one by one in this file, many of them in `bulk.rs`.

mod bulk;
mod filter;
mod list;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Postgres};

use crate::transaction::{RowKeys, ShortTx};
pub(crate) use bulk::{Batches, Change};
pub use filter::Filter;
pub use list::KeptDelivery;
#[cfg(feature = "dashboard")]
pub(crate) use list::count;
pub(crate) use list::list;

const LOCK_PROCESSED: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3 and state = 'processed'
    for update
";

const LOCK_CONTENT: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and (state <> 'recorded' or reason is distinct from 'its content was erased')
    for update
";

/// Waits for whoever changes what is kept of the delivery, as a reprocess does.
const LOCK_KEPT: &str = "
    select 1
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
    for update
";

const DELETE_KEPT: &str = "
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

const IS_PROCESSED: &str = "
    select exists (
        select
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = coalesce($2, '') and delivery_id = $3
    )
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
    /// What was kept of it is gone, and it is not run again.
    Discarded,
    /// It was processed, so there is nothing to discard.
    Processed,
    /// Nothing is kept of it.
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
    /// It was processed, and its request is not there.
    NotKept,
}

/// The key of an endpoint's deliveries: its name, and the tenant if only its deliveries are meant.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) tenant: Option<&'a str>,
}

/// Returns whether it will be run again. Not one that was processed.
pub(crate) async fn retry(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let retried = one(include_str!("../kept/retry.sql"), of, delivery_id)
        .fetch_optional(tx)
        .await?;
    Ok(retried.is_some())
}

/// A statement on one delivery.
fn one<'q>(
    sql: &'static str,
    of: Of<'q>,
    delivery_id: &'q str,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql)
        .bind(of.endpoint)
        .bind(of.tenant.unwrap_or_default())
        .bind(delivery_id)
}

pub(crate) async fn is_processed(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(IS_PROCESSED)
        .bind(of.endpoint)
        .bind(of.tenant)
        .bind(delivery_id)
        .fetch_one(tx)
        .await
}

/// Returns whether it was kept, and not processed. Waits for an attempt under way, for at most so many
/// milliseconds if a limit is given.
pub(crate) async fn discard(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
    lock_timeout: Option<&str>,
) -> sqlx::Result<bool> {
    // The attempt may commit.
    one(include_str!("../kept/lock.sql"), of, delivery_id)
        .bind(lock_timeout)
        .execute(&mut *tx)
        .await?;
    let discarded = one(include_str!("../kept/discard.sql"), of, delivery_id)
        .fetch_all(&mut *tx)
        .await?;
    let discarded = RowKeys::read(&discarded)?;
    set_aside(&discarded, of, tx).await?;
    Ok(discarded.len() > 0)
}

/// Erases the content of a delivery. Returns whether there was any. Waits for an attempt under way, as a discard
/// does.
pub(crate) async fn erase(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
    lock_timeout: Option<&str>,
) -> sqlx::Result<bool> {
    one(include_str!("../kept/lock.sql"), of, delivery_id)
        .bind(lock_timeout)
        .execute(&mut *tx)
        .await?;
    let locked = one(LOCK_CONTENT, of, delivery_id).fetch_all(&mut *tx);
    let locked = RowKeys::read(&locked.await?)?;
    erase_chosen(&locked, of.endpoint, tx).await?;
    Ok(locked.len() > 0)
}

/// Erases the content of deliveries whose rows are locked.
pub(crate) async fn erase_chosen(
    chosen: &RowKeys,
    endpoint: &str,
    tx: &mut PgConnection,
) -> sqlx::Result<()> {
    let erase = sqlx::query(include_str!("../kept/erase.sql"));
    chosen.bind(erase, endpoint).execute(tx).await.map(drop)
}

/// Reconciliation leaves these deliveries alone.
async fn set_aside(keys: &RowKeys, of: Of<'_>, tx: &mut PgConnection) -> sqlx::Result<()> {
    let set_aside = sqlx::query(include_str!("../kept/set_aside.sql"));
    let set_aside = keys.bind(set_aside, of.endpoint);
    set_aside.execute(tx).await.map(drop)
}

/// Returns whether its request was there, and it is run again.
pub(crate) async fn reprocess(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let locked = one(LOCK_PROCESSED, of, delivery_id).fetch_all(&mut *tx);
    let locked = RowKeys::read(&locked.await?)?;
    Ok(reprocess_chosen(&locked, of, tx).await? > 0)
}

/// Whether it was processed, and its request is still there.
#[cfg(feature = "dashboard")]
pub(crate) async fn is_archived(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let archived = one(LOCK_PROCESSED, of, delivery_id).fetch_optional(tx);
    Ok(archived.await?.is_some())
}

/// Deletes the claim of a processed delivery, and what is kept of it: it must not run again by itself.
/// Returns whether it was there.
pub(crate) async fn forget(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    if !is_processed(tx, of, delivery_id).await? {
        return Ok(false);
    }
    // Nobody else's attempt holds it for long, since the delivery is processed.
    one(LOCK_KEPT, of, delivery_id).execute(&mut *tx).await?;
    let claim = RowKeys::one(of.tenant.unwrap_or_default(), delivery_id);
    let found = claim.delete_claims(of.endpoint, None, &mut *tx).await? > 0;
    if found {
        // Without this: a failure is kept although its commit went through, it is forgotten, and runs again by itself.
        one(DELETE_KEPT, of, delivery_id).execute(&mut *tx).await?;
        set_aside(&claim, of, tx).await?;
    }
    Ok(found)
}

/// Makes processed deliveries due whose rows are locked. Returns how many.
async fn reprocess_chosen(
    chosen: &RowKeys,
    of: Of<'_>,
    tx: &mut PgConnection,
) -> sqlx::Result<u64> {
    chosen.delete_claims(of.endpoint, None, tx).await?;
    let reprocess = sqlx::query(include_str!("../kept/reprocess.sql"));
    let reprocessed = chosen.bind(reprocess, of.endpoint).execute(tx).await?;
    Ok(reprocessed.rows_affected())
}

pub(crate) async fn pause(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, include_str!("../kept/pause.sql"), endpoint).await
}

pub(crate) async fn resume(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, include_str!("../kept/resume.sql"), endpoint).await
}

async fn on_endpoint(pool: &PgPool, statement: &'static str, endpoint: &str) -> sqlx::Result<()> {
    let mut tx = ShortTx::begin(pool).await?;
    sqlx::query(statement)
        .bind(endpoint)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}
