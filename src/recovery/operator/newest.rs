//! The newest deliveries with kept requests, for rehearsals and captures.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::SystemTime;

use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::Scope;
use super::filter::{Filter, is_listed, meets_filter, plan_for_values};
use crate::transaction::ShortTx;
use crate::transaction::pg_time::from_unix_time;

/// At most `$14` deliveries, in the order of [`Chosen`]. No index has this order, so the statement reads everything
/// that the filter matches, once. A recorded delivery is left out, because it has no request.
const NEWEST: &str = concat!(
    "
    select
        kept.tenant, kept.delivery_id,
        extract(epoch from kept.first_received_at)::float8 as first_received_at
    from idempotent_webhook.kept_deliveries as kept
    where ",
    is_listed!(),
    "
        and ",
    meets_filter!(),
    "
        and kept.state <> 'recorded'
    order by kept.first_received_at desc, kept.tenant, kept.delivery_id
    limit $14
"
);

/// A kept delivery, by its key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chosen {
    /// The first field, so that the newest delivery sorts first.
    received_at: Reverse<SystemTime>,
    pub(crate) tenant: String,
    pub(crate) delivery_id: String,
}

impl Chosen {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            received_at: Reverse(from_unix_time(row.try_get("first_received_at")?)),
            tenant: row.try_get("tenant")?,
            delivery_id: row.try_get("delivery_id")?,
        })
    }
}

/// The newest deliveries that match any of these filters, newest first.
pub(crate) async fn newest(
    pool: &PgPool,
    scope: Scope<'_>,
    filters: &[Filter],
    limit: usize,
) -> sqlx::Result<BTreeSet<Chosen>> {
    let mut chosen = BTreeSet::new();
    for filter in filters {
        let newest = ShortTx::run(pool, async |tx| {
            plan_for_values(tx).await?;
            let newest = filter.bind_listed(NEWEST, scope);
            let newest = newest.bind(i64::try_from(limit).unwrap_or(i64::MAX));
            newest.fetch_all(tx).await
        });
        for row in &newest.await? {
            chosen.insert(Chosen::read(row)?);
        }
        while chosen.len() > limit {
            chosen.pop_last();
        }
    }
    Ok(chosen)
}
