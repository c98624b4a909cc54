//! An operation on many deliveries, a batch at a time.

use std::ops::AddAssign;

use sqlx::{PgConnection, PgPool};

use super::Of;
use super::filter::{Filter, is_chosen, plan_for_values};
use super::operation::{Applied, Operation, Running, is_meant, run};
use crate::transaction::RowKeys;

const NOW: &str = "select extract(epoch from now())::float8";

/// How many deliveries are changed in one transaction. Each has a lock of its claim meanwhile, and the table of all
/// locks of Postgres has room for 64 a connection by default.
pub(crate) const BATCH: usize = 500;

/// How many keys are chosen at once. They are in memory until it is their turn.
const CHOICE: i64 = 20_000;

/// At most `$18` keys after that of the tenant `$16` and the id `$17`.
const CHOOSE: &str = concat!(
    "
    select kept.tenant, kept.delivery_id
    from idempotent_webhook.kept_deliveries as kept
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    where ",
    is_meant!(),
    "
        and ($16::text is null or (kept.tenant, kept.delivery_id) > ($16, $17))
    order by kept.tenant, kept.delivery_id
    limit $18
"
);

/// How many deliveries a change of many has changed, and how many it has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// So many were changed.
    pub changed: u64,
    /// So many were left, since an attempt was working on them.
    pub running: u64,
}

impl AddAssign<&Applied> for Changes {
    fn add_assign(&mut self, applied: &Applied) {
        self.changed += applied.changed.len() as u64;
        self.running += applied.running as u64;
    }
}

/// An operation on all deliveries of a filter.
///
/// They are chosen in the order of their keys, which nothing changes, and each once: it ends whatever the provider
/// sends meanwhile, and whatever fails, is processed or is changed by another operation does not escape it.
pub(crate) struct Bulk<'a> {
    operation: Operation,
    of: Of<'a>,
    /// It has a time before which they came: that of its beginning, if none was given.
    filter: Filter,
    /// Those whose turn comes next.
    chosen: RowKeys,
    has_chosen_all: bool,
}

impl<'a> Bulk<'a> {
    pub(crate) fn new(operation: Operation, of: Of<'a>, filter: &Filter) -> Self {
        Self {
            operation,
            of,
            filter: filter.clone(),
            chosen: RowKeys::default(),
            has_chosen_all: false,
        }
    }

    /// Changes the next batch, in a transaction that has begun for operations. The next one is that after the one
    /// [`committed`](Self::committed).
    pub(crate) async fn next(&mut self, tx: &mut PgConnection) -> sqlx::Result<Applied> {
        if self.filter.received_before.is_none() {
            let now = sqlx::query_scalar(NOW).fetch_one(&mut *tx).await?;
            self.filter.received_before = Some(now);
        }
        if self.chosen.len() <= BATCH && !self.has_chosen_all {
            plan_for_values(&mut *tx).await?;
            let after = self.chosen.last();
            let choose = self.filter.bind(CHOOSE, self.of, self.operation);
            let chosen = choose
                .bind(after.map(|(tenant, _)| tenant))
                .bind(after.map(|(_, id)| id))
                .bind(CHOICE)
                .fetch_all(&mut *tx)
                .await?;
            self.has_chosen_all = chosen.len() < CHOICE.unsigned_abs() as usize;
            self.chosen.append(RowKeys::read(&chosen)?);
        }
        let batch = self.chosen.first(BATCH);
        self.operation
            .apply(self.of, &self.filter, &batch, Running::IsLeft, tx)
            .await
    }

    /// Goes on after the batch.
    pub(crate) fn committed(&mut self) {
        self.chosen.drop_first(BATCH);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.has_chosen_all && self.chosen.is_empty()
    }

    /// All batches, each in a transaction of its own.
    pub(crate) async fn run(mut self, pool: &PgPool) -> sqlx::Result<Changes> {
        let mut changes = Changes::default();
        while !self.is_over() {
            let applied = run(pool, async |tx| self.next(tx).await).await?;
            self.committed();
            changes += &applied;
        }
        Ok(changes)
    }
}
