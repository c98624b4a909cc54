//! A bulk operation: an operation on many deliveries, a batch at a time. The dashboard runs its batches itself, in
//! `dashboard/operate/bulk.rs`.

use std::collections::VecDeque;
use std::ops::AddAssign;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row};

use super::Scope;
use super::filter::{Filter, is_listed, meets_filter, plan_for_values};
use super::operation::{Applied, Operation, Running, can_change, in_transaction};
use crate::transaction::{DELETED_BYTES, RowKeys, first_within};

const NOW: &str = "select extract(epoch from now())::float8";

/// The most deliveries that one transaction changes. For each delivery, the transaction holds the lock of the
/// claim, and the lock table of Postgres has room for 64 locks per connection by default.
pub(crate) const BATCH: usize = 500;

/// How many keys are chosen at once, in a transaction of their own. The keys stay in memory until their batches are
/// applied.
const CHOICE: usize = 20_000;

/// The next `$17` keys, after the key with the tenant `$15` and the id `$16`.
const CHOOSE: &str = concat!(
    "
    select kept.tenant, kept.delivery_id, coalesce(kept.body_bytes, 0) as body_bytes
    from idempotent_webhook.kept_deliveries as kept
    where ",
    is_listed!(),
    "
        and ",
    can_change!(),
    "
        and ($15::text is null or (kept.tenant, kept.delivery_id) > ($15, $16))
    order by kept.tenant, kept.delivery_id
    limit $17
"
);

/// How many deliveries a bulk operation has changed, and how many it has left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// How many were changed.
    pub changed: u64,
    /// How many were left alone, because an attempt was working on them.
    pub running: u64,
}

impl AddAssign<&Applied> for Changes {
    fn add_assign(&mut self, applied: &Applied) {
        self.changed += applied.changed.len() as u64;
        self.running += applied.running as u64;
    }
}

/// A delivery that was chosen.
struct Chosen {
    tenant: String,
    delivery_id: String,
    body_bytes: usize,
}

impl Chosen {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        let body_bytes: i32 = row.try_get("body_bytes")?;
        Ok(Self {
            tenant: row.try_get("tenant")?,
            delivery_id: row.try_get("delivery_id")?,
            body_bytes: usize::try_from(body_bytes).unwrap_or_default(),
        })
    }

    fn key(&self) -> (String, String) {
        (self.tenant.clone(), self.delivery_id.clone())
    }
}

/// An operation on all deliveries that match a filter.
///
/// Deliveries are chosen in the order of their keys, which never change, and each delivery is chosen once. So the
/// operation ends even if the provider goes on sending. No delivery escapes the operation because it fails, is
/// processed or is changed by another operation meanwhile.
pub(crate) struct Bulk<'a> {
    operation: Operation,
    scope: Scope<'a>,
    /// If no `received_before` was given, it is set to the time of the first choice.
    filter: Filter,
    /// Chosen deliveries that are not in a batch yet.
    chosen: VecDeque<Chosen>,
    /// The last key that was chosen. The next choice starts after it.
    last: Option<(String, String)>,
    has_chosen_all: bool,
}

impl<'a> Bulk<'a> {
    pub(crate) fn new(operation: Operation, scope: Scope<'a>, filter: &Filter) -> Self {
        Self {
            operation,
            scope,
            filter: filter.clone(),
            chosen: VecDeque::new(),
            last: None,
            has_chosen_all: false,
        }
    }

    /// The next batch. The caller must [apply](Self::apply) each batch.
    pub(crate) async fn next(&mut self, pool: &PgPool) -> sqlx::Result<Option<RowKeys>> {
        if self.chosen.is_empty() && !self.has_chosen_all {
            self.chosen = in_transaction(pool, async |tx| self.choose(tx).await).await?;
            self.last = self.chosen.back().map(Chosen::key);
            self.has_chosen_all = self.chosen.len() < CHOICE;
        }
        let sizes = self.chosen.iter().map(|chosen| chosen.body_bytes);
        let number = first_within(DELETED_BYTES, sizes.take(BATCH)).min(self.chosen.len());
        let batch: RowKeys = self
            .chosen
            .drain(..number)
            .map(|chosen| (chosen.tenant, chosen.delivery_id))
            .collect();
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }

    async fn choose(&mut self, tx: &mut PgConnection) -> sqlx::Result<VecDeque<Chosen>> {
        if self.filter.received_before.is_none() {
            let now = sqlx::query_scalar(NOW).fetch_one(&mut *tx).await?;
            self.filter.received_before = Some(now);
        }
        plan_for_values(&mut *tx).await?;
        let choose = self.filter.bind(CHOOSE, self.scope, self.operation);
        let chosen = choose
            .bind(self.last.as_ref().map(|(tenant, _)| tenant))
            .bind(self.last.as_ref().map(|(_, id)| id))
            .bind(CHOICE as i64)
            .fetch_all(tx)
            .await?;
        chosen.iter().map(Chosen::read).collect()
    }

    /// Changes a batch, in a transaction that was [started](in_transaction) for operations.
    pub(crate) async fn apply(
        &self,
        batch: &RowKeys,
        tx: &mut PgConnection,
    ) -> sqlx::Result<Applied> {
        let (scope, filter) = (self.scope, &self.filter);
        self.operation
            .apply(scope, filter, batch, Running::IsLeft, tx)
            .await
    }

    /// Applies all batches, each in a transaction of its own.
    pub(crate) async fn run(mut self, pool: &PgPool) -> sqlx::Result<Changes> {
        let mut changes = Changes::default();
        while let Some(batch) = self.next(pool).await? {
            changes += &in_transaction(pool, async |tx| self.apply(&batch, tx).await).await?;
        }
        Ok(changes)
    }
}
