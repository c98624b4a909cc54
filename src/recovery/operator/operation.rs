//! An operation of an operator: the same sequence of statements for one delivery and for many.

use sqlx::{PgConnection, PgPool, Row};

use super::Scope;
use super::filter::{Filter, meets_filter};
use crate::recovery::kept::set_aside;
use crate::transaction::{RowKeys, ShortTx, begin_own};

/// Begins a transaction of an operation.
///
/// The transaction waits for a row or an attempt for as long as the pool's `lock_timeout` says. If that is not set, it
/// waits for two seconds, which is less than a delivery waits for a connection. If the process is lost, Postgres ends
/// the transaction.
///
/// The statements select rows by key, so one plan fits all values. Planning each statement again would take longer than
/// running it. On Citus, which has the table `pg_dist_partition`, each statement is planned again, because Citus cannot
/// plan a statement for several workers without the values.
const BEGIN: &str = concat!(
    begin_own!(),
    ";
    select set_config('plan_cache_mode', 'force_generic_plan', true)
    where to_regclass('pg_dist_partition') is null;
    select set_config('lock_timeout', '2s', true)
    where current_setting('lock_timeout') = '0';
    select set_config('idle_in_transaction_session_timeout', '10s', true)
    where current_setting('idle_in_transaction_session_timeout') = '0'"
);

/// The delivery matches the filter, and the operation `$14` can change it.
macro_rules! can_change {
    () => {
        concat!(
            meets_filter!(),
            "
        and case $14
            when 'retry' then kept.state = 'dead' or kept.next_attempt_at > now() or kept.taken_by is not null
            when 'erase' then not kept.erased
            when 'reprocess' then $13::float8 is null or kept.processed_at < to_timestamp($13)
            else true
        end"
        )
    };
}
pub(super) use can_change;

/// Locks the rows of the tenants `$15` and the ids `$16`. It waits for each transaction that is changing these rows,
/// and then checks again whether the rows match. All operations lock rows in the same order, so that two operations
/// cannot deadlock.
const LOCK: &str = concat!(
    "
    select
        kept.tenant, kept.delivery_id,
        kept.taken_by is not null and exists (
            select from idempotent_webhook.processes where number = kept.taken_by
        ) as is_taken
    from unnest(array_fill($1::text, array[cardinality($15::text[])]), $15::text[], $16::text[]) as key (endpoint, tenant, delivery_id)
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[key.endpoint])
            and kept.tenant = key.tenant
            and kept.delivery_id = key.delivery_id
    where kept.state = any($3::text[])
        and ",
    can_change!(),
    "
    order by kept.tenant, kept.delivery_id
    for update of kept
"
);

/// Waits for provider lists that are being compared with the kept deliveries. This comes before [`HOLD_SENT_AGAIN`], so
/// that no request waits for these lists.
const AWAIT_LISTS: &str = "lock table idempotent_webhook.discarded in row exclusive mode";

/// Waits for each running `note_resent.sql` of the endpoint `$1`, which notes that a delivery was sent again, and
/// shares this lock. Later runs of that statement wait until the end of the transaction, but not for long: after this
/// lock, the operation only writes, and none of its writes waits for long. Without this lock, the operation could miss
/// a note and discard a delivery although the provider gets the answer that its repeated request is accepted.
const HOLD_SENT_AGAIN: &str = "select pg_advisory_xact_lock(hashtextextended($1, 4))";

/// The deliveries of these keys that were sent again since `$4`.
const SENT_AGAIN: &str = "
    select key.tenant, key.delivery_id
    from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
    join idempotent_webhook.sent_again as again
        on again.delivery_id = any (array[key.delivery_id])
            and again.endpoint = key.endpoint
            and again.tenant = key.tenant
    where again.received_at >= to_timestamp($4)
";

/// The operations of an operator on kept deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Retry,
    Discard,
    Reprocess,
    Erase,
}

/// What an operation does with a delivery that an attempt is working on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    /// The operation waits for the attempt.
    IsAwaited,
    IsLeft,
    /// The operation waits only for the lock of the row. That is enough, because a processed delivery has no attempt,
    /// and an attempt that is about to commit has locked the row.
    HoldsRow,
}

/// The deliveries that an operation has changed, and how many it has left alone.
#[must_use = "it says what was left"]
#[derive(Default)]
pub(crate) struct Applied {
    pub(crate) changed: RowKeys,
    /// How many were left alone because an attempt was working on them.
    pub(crate) running: usize,
}

/// Runs `work` in a transaction for operations, and commits it.
pub(crate) async fn in_transaction<T>(
    pool: &PgPool,
    work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
) -> sqlx::Result<T> {
    ShortTx::run_after(BEGIN, pool, work).await
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Discard => "discard",
            Self::Reprocess => "reprocess",
            Self::Erase => "erase",
        }
    }

    /// For the log.
    pub(crate) fn past(self) -> &'static str {
        match self {
            Self::Retry => "retried",
            Self::Discard => "discarded",
            Self::Reprocess => "reprocessed",
            Self::Erase => "erased",
        }
    }

    /// The states that the operation can change.
    pub(super) fn states(self) -> &'static [&'static str] {
        match self {
            Self::Retry => &["due", "dead"],
            Self::Discard => &["recorded", "due", "dead"],
            Self::Reprocess => &["processed"],
            Self::Erase => &["recorded", "due", "dead", "processed"],
        }
    }

    /// Applies the operation to these deliveries, in a transaction that was [started](in_transaction) for it.
    ///
    /// Locks are taken in the order of `kept/mod.rs`: first the locks of the claims, then the locks of the rows.
    pub(super) async fn apply(
        self,
        scope: Scope<'_>,
        filter: &Filter,
        keys: &RowKeys,
        running: Running,
        tx: &mut PgConnection,
    ) -> sqlx::Result<Applied> {
        let endpoint = scope.endpoint;
        let free = match running {
            Running::IsAwaited => {
                let wait = sqlx::query(include_str!("../kept/await_attempt.sql"));
                keys.bind(wait, endpoint).execute(&mut *tx).await?;
                None
            }
            Running::IsLeft => {
                let free = sqlx::query(include_str!("../kept/not_running.sql"));
                let free = keys.bind(free, endpoint).fetch_all(&mut *tx).await?;
                Some(RowKeys::read(&free)?)
            }
            Running::HoldsRow => None,
        };
        let free = free.as_ref().unwrap_or(keys);
        let lock = free.bind_after(filter.bind(LOCK, scope, self));
        let mut locked = lock.fetch_all(&mut *tx).await?;
        let mut running = keys.len() - free.len();
        if self == Self::Retry {
            // A delivery that a living process has taken counts as running even if it has no claim yet: for
            // example, its handler may claim late.
            let mut taken = 0;
            for row in &locked {
                taken += usize::from(row.try_get::<bool, _>("is_taken")?);
            }
            locked.retain(|row| !row.try_get("is_taken").unwrap_or(true));
            running += taken;
        }
        let mut changed = RowKeys::read(&locked)?;
        if let Some(time) = filter.received_before
            && !changed.is_empty()
        {
            if self == Self::Discard {
                sqlx::query(AWAIT_LISTS).execute(&mut *tx).await?;
            }
            let hold = sqlx::query(HOLD_SENT_AGAIN).bind(endpoint);
            hold.execute(&mut *tx).await?;
            let again = changed.bind(sqlx::query(SENT_AGAIN), endpoint).bind(time);
            let again = RowKeys::read(&again.fetch_all(&mut *tx).await?)?;
            changed.remove(&again);
        }
        if !changed.is_empty() {
            self.write(&changed, endpoint, tx).await?;
        }
        Ok(Applied { changed, running })
    }

    /// Changes deliveries whose rows are locked.
    pub(crate) async fn write(
        self,
        keys: &RowKeys,
        endpoint: &str,
        tx: &mut PgConnection,
    ) -> sqlx::Result<()> {
        if self == Self::Reprocess {
            keys.delete_claims(endpoint, None, &mut *tx).await?;
        }
        if self == Self::Discard {
            // This comes before the delete, so that the delete also sees deliveries that a provider list has kept
            // meanwhile.
            let set_aside = set_aside(keys, endpoint, false);
            set_aside.execute(&mut *tx).await?;
        }
        let sql = match self {
            Self::Retry => include_str!("../kept/retry.sql"),
            Self::Discard => include_str!("../kept/discard.sql"),
            Self::Reprocess => include_str!("../kept/reprocess.sql"),
            Self::Erase => include_str!("../kept/erase.sql"),
        };
        keys.bind(sqlx::query(sql), endpoint)
            .execute(&mut *tx)
            .await
            .map(drop)
    }
}
