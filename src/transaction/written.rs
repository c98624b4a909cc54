//! Which rows the handler of a rehearsal has written, by table.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, Row};

const WRITTEN: &str = include_str!("written.sql");

/// How many rows of a table were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RowsWritten {
    /// How many were inserted.
    pub inserted: u64,
    /// How many were updated, including those by `on conflict do update`.
    pub updated: u64,
    /// How many were deleted.
    pub deleted: u64,
}

/// The rows that were written, by the name of the table with its schema.
pub(crate) type RowsByTable = BTreeMap<String, RowsWritten>;

impl RowsWritten {
    /// The rows that were written since an earlier count. A `truncate` can lower the count, because it removes the rows
    /// that were written just before it. Even then, the result is not below 0.
    fn since(self, before: Self) -> Self {
        Self {
            inserted: self.inserted.saturating_sub(before.inserted),
            updated: self.updated.saturating_sub(before.updated),
            deleted: self.deleted.saturating_sub(before.deleted),
        }
    }
}

impl AddAssign for RowsWritten {
    fn add_assign(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
    }
}

/// The rows that a session has written so far, in the current transaction and shortly before it. `None` if Postgres
/// does not count rows.
pub(super) async fn read(connection: &mut PgConnection) -> sqlx::Result<Option<RowsByTable>> {
    // A simple query, because the handler may have deallocated the prepared statements.
    let row = sqlx::raw_sql(WRITTEN).fetch_one(connection).await?;
    let json: Option<String> = row.try_get(0)?;
    json.map(|json| serde_json::from_str(&json))
        .transpose()
        .map_err(|error| sqlx::Error::Decode(error.into()))
}

/// The rows that were written between two reads.
pub(super) fn between(before: &RowsByTable, after: RowsByTable) -> RowsByTable {
    let since = |(table, rows): (String, RowsWritten)| {
        let before = before.get(&table).copied().unwrap_or_default();
        (table, rows.since(before))
    };
    let written = after.into_iter().map(since);
    written
        .filter(|(_, rows)| *rows != RowsWritten::default())
        .collect()
}
