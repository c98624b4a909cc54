//! The tables, range by range, and when each range of a large table has to be read.
//!
//! Old rows are found by reading a table. An index on their time would cost each claim. A BRIN
//! index would not help for long, since its ranges only grow: once the space of deleted rows is
//! reused, they reach from the oldest to the newest row that has ever been there.
//!
//! So `Retention` records for each range of a large table when its first row can be deleted, and
//! does not read the range before that. Rows that are inserted later are newer. Rows arrive in the
//! order of their time, and so does the space that deletions free. So most ranges are read twice:
//! when they are full, and when they are due. A range with rows of mixed ages is read at most fifty
//! times within the age, and its rows stay longer by up to a fiftieth of it.

use sqlx::postgres::PgArguments;
use sqlx::postgres::types::PgInterval;
use sqlx::query::QueryScalar;
use sqlx::{AssertSqlSafe, Postgres};

/// A query. All of them return numbers.
pub(super) type Numbers = QueryScalar<'static, Postgres, i64, PgArguments>;

/// The pages of a range: 8 MiB with pages of 8 KiB.
const RANGE: i64 = 1024;

/// The pages from which rows are deleted in one transaction.
const PIECE: i64 = 128;

/// Up to this many pages, a table is read in each round: 64 MiB.
pub(super) const ALWAYS_READ: i64 = 8 * RANGE;

/// A table whose rows are deleted by age.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The column with the time of a row.
    aged: &'static str,
    /// Which rows stay, whatever their age.
    protected: &'static str,
}

pub(super) const DELIVERIES: Table = Table {
    name: "deliveries",
    aged: "received_at",
    // Otherwise recovery could run a delivery that was processed.
    protected: "exists (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = {row}.endpoint
            and kept.tenant = {row}.tenant
            and kept.delivery_id = {row}.delivery_id
            and kept.state <> 'recorded'
    )",
};

pub(super) const BODIES: Table = Table {
    name: "bodies",
    aged: "received_at",
    protected: "false",
};

pub(super) const SUBJECTS: Table = Table {
    name: "subjects",
    aged: "advanced_at",
    protected: "false",
};

pub(super) const KEPT: Table = Table {
    name: "kept_deliveries",
    aged: "last_failed_at",
    protected: "{row}.state in ('due', 'processed')",
};

const SIZE: &str = "
    select pg_relation_size('idempotent_webhook.{table}') / current_setting('block_size')::int8
";

/// When the oldest row of each endpoint can be deleted.
const FIRST_DUE: &str = "
    select oldest.at + greatest($3, longest.redelivery_window) as due
    from (
        select endpoint, min({aged}) as at
        from idempotent_webhook.{table}
        where ctid >= format('(%s,0)', $1::int8)::tid and ctid < format('(%s,0)', $2::int8)::tid
        group by endpoint
    ) as oldest
    left join (
        select endpoint, max(redelivery_window) as redelivery_window
        from idempotent_webhook.redelivery_windows
        group by endpoint
    ) as longest using (endpoint)
";

const IS_DUE: &str = "
    select coalesce(min(due) < now(), false)::int::int8
    from ({first_due}) as first
";

const DUE_RANGES: &str = "
    select range
    from generate_series(0, ($1 - 1) / $2) as range
    where not exists (
        select
        from idempotent_webhook.retention_ranges as known
        where known.table_name = '{table}'
            and known.range = range.range
            and known.relfilenode = pg_relation_filenode('idempotent_webhook.{table}')
            and known.older_than <= $3
            and known.next_due > now()
    )
    order by range
";

const FORGET: &str = "
    delete from idempotent_webhook.retention_ranges
    where table_name = '{table}' and range = $1
    returning range
";

const RECORD: &str = "
    with first as materialized ({first_due}),
    -- Rows that are inserted from now on are not due before.
    shortest as (
        select greatest($3, min(redelivery_window)) as age
        from idempotent_webhook.redelivery_windows
    ),
    recorded as (
        insert into idempotent_webhook.retention_ranges
            (table_name, range, relfilenode, older_than, next_due)
        select
            '{table}',
            $4,
            pg_relation_filenode('idempotent_webhook.{table}'),
            $3,
            greatest(
                least(min(due), now() + (select age from shortest)),
                now() + (select age from shortest) / 50
            )
        from first
    )
    select coalesce(min(due) < now(), false)::int::int8
    from first
";

/// Deletes nothing of an endpoint whose window is not registered.
const DELETE_BATCH: &str = "
    with deleted as (
        delete from idempotent_webhook.{table} as old
        where ctid = any (array(
            select ctid
            from idempotent_webhook.{table} as candidate
            where ctid >= format('(%s,0)', $1::int8)::tid
                and ctid < format('(%s,0)', $2::int8)::tid
                and {aged} < now() - $3
                and {aged} < now() - (
                    select max(redelivery_window)
                    from idempotent_webhook.redelivery_windows
                    where redelivery_windows.endpoint = candidate.endpoint
                )
                and not ({protects_candidate})
            limit $4
        ))
        -- It may have been updated since it was selected.
        and old.{aged} < now() - $3
        and old.{aged} < now() - (
            select max(redelivery_window)
            from idempotent_webhook.redelivery_windows
            where redelivery_windows.endpoint = old.endpoint
        )
        and not ({protects_old})
        returning 1
    )
    select count(*) from deleted
";

const DELETE_RESOLVED: &str = "
    with deleted as (
        delete from idempotent_webhook.kept_deliveries as kept
        where ctid = any (array(
            select kept.ctid
            from idempotent_webhook.kept_deliveries as kept
            where ctid >= format('(%s,0)', $1::int8)::tid
                and ctid < format('(%s,0)', $2::int8)::tid
                and state <> 'processed'
                and exists (
                    select
                    from idempotent_webhook.deliveries
                    where deliveries.endpoint = kept.endpoint
                        and deliveries.tenant = kept.tenant
                        and deliveries.delivery_id = kept.delivery_id
                )
            limit $3
        ))
        and kept.taken_at is null
        returning 1
    )
    select count(*) from deleted
";

impl Table {
    /// A statement with the names of this table.
    fn sql(&self, template: &str) -> String {
        template
            .replace("{first_due}", FIRST_DUE)
            .replace(
                "{protects_candidate}",
                &self.protected.replace("{row}", "candidate"),
            )
            .replace("{protects_old}", &self.protected.replace("{row}", "old"))
            .replace("{table}", self.name)
            .replace("{aged}", self.aged)
    }

    /// In pages.
    pub(super) fn size(&self) -> Numbers {
        numbers(self.sql(SIZE))
    }

    /// The numbers of the ranges that have to be read.
    pub(super) fn due_ranges(&self, pages: i64, age: PgInterval) -> Numbers {
        numbers(self.sql(DUE_RANGES))
            .bind(pages)
            .bind(RANGE)
            .bind(age)
    }

    /// 1 if a range has a row that can be pruned.
    pub(super) fn is_due(&self, range: Range, age: PgInterval) -> Numbers {
        let pages = range.pages();
        numbers(self.sql(IS_DUE))
            .bind(pages.first)
            .bind(pages.end)
            .bind(age)
    }

    pub(super) fn forget(&self, range: Range) -> Numbers {
        numbers(self.sql(FORGET)).bind(range.0)
    }

    /// Records when a range has to be read again, and returns what `is_due` does.
    pub(super) fn record(&self, range: Range, age: PgInterval) -> Numbers {
        let pages = range.pages();
        numbers(self.sql(RECORD))
            .bind(pages.first)
            .bind(pages.end)
            .bind(age)
            .bind(range.0)
    }

    /// Returns how many were deleted.
    pub(super) fn delete_batch(&self, pages: &Pages, age: PgInterval, limit: i64) -> Numbers {
        numbers(self.sql(DELETE_BATCH))
            .bind(pages.first)
            .bind(pages.end)
            .bind(age)
            .bind(limit)
    }
}

/// A statement of this file, with the names of a table filled in.
fn numbers(sql: String) -> Numbers {
    sqlx::query_scalar(AssertSqlSafe(sql))
}

/// Deletes what is kept of deliveries that were processed since, and returns how many.
pub(super) fn delete_resolved(pages: &Pages, limit: i64) -> Numbers {
    numbers(KEPT.sql(DELETE_RESOLVED))
        .bind(pages.first)
        .bind(pages.end)
        .bind(limit)
}

/// The number of a range.
#[derive(Clone, Copy)]
pub(super) struct Range(pub(super) i64);

/// From the first page to the one after the last.
pub(super) struct Pages {
    first: i64,
    end: i64,
}

impl Range {
    /// The ranges of a table that has so many pages.
    pub(super) fn all(pages: i64) -> impl Iterator<Item = Self> {
        (0..=(pages - 1).max(0) / RANGE).map(Self)
    }

    fn pages(self) -> Pages {
        Pages {
            first: self.0 * RANGE,
            end: (self.0 + 1) * RANGE,
        }
    }

    pub(super) fn pieces(self) -> impl Iterator<Item = Pages> {
        let Pages { first, end } = self.pages();
        (first..end).step_by(PIECE as usize).map(|first| Pages {
            first,
            end: first + PIECE,
        })
    }
}
