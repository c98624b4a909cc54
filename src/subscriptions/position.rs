//! What was found last of a subscription, and which process compares next: a row in Postgres.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use crate::pg_time::interval;
use crate::random::random;
use crate::settings::Settings;
use crate::transaction::{DatabaseError, Store};

/// How long a process has the turn. Longer than a comparison takes.
const TURN: Duration = Duration::from_secs(5 * 60);

/// The row of a subscription, as one process uses it.
pub(super) struct Position {
    pub(super) store: Store,
    pub(super) endpoint: String,
    pub(super) address: String,
    pub(super) source: String,
    /// That of the application.
    version: Arc<str>,
    /// The longest time from one comparison to the next.
    longest: Duration,
    process: i64,
}

/// What the row says.
pub(super) struct Look {
    pub(super) differences: i64,
    /// Until it is the turn of a process.
    pub(super) wait: Duration,
}

impl Position {
    /// The row of a list. `longest` is the longest time from one comparison to the next.
    pub(super) fn new(
        settings: &Settings,
        address: String,
        source: String,
        longest: Duration,
    ) -> Self {
        Self {
            store: settings.store.clone(),
            endpoint: settings.verification.endpoint.to_string(),
            address,
            source,
            version: settings.version.clone(),
            // No shorter than a turn of another process.
            longest: longest.max(TURN),
            process: random().cast_signed(),
        }
    }

    fn query(&self, sql: &'static str) -> Query<'_, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(&self.endpoint)
            .bind(&self.address)
            .bind(&self.source)
    }

    pub(super) async fn look(&self) -> Result<Look, DatabaseError> {
        let look = || {
            self.query(include_str!("sql/look.sql"))
                .bind(&*self.version)
                .bind(interval(self.longest))
        };
        let rows = self.store.run(look).await?;
        let Some(row) = rows.first() else {
            return Ok(Look {
                differences: 0,
                wait: Duration::ZERO,
            });
        };
        let seconds: f64 = row.try_get("wait")?;
        Ok(Look {
            differences: row.try_get("differences")?,
            wait: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        })
    }

    /// Takes the turn. Returns what was found before, or `None` if it is not the turn of this process.
    pub(super) async fn begin(&self) -> Result<Option<Vec<String>>, DatabaseError> {
        let begin = || {
            self.query(include_str!("sql/begin.sql"))
                .bind(&*self.version)
                .bind(interval(self.longest))
                .bind(self.process)
                .bind(interval(TURN))
        };
        let rows = self.store.run(begin).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let before: Option<Vec<String>> = row.try_get("differences")?;
        Ok(Some(before.unwrap_or_default()))
    }

    /// Ends the turn, with what was found, or with why the provider could not be asked. Returns whether it was still the
    /// turn of this process.
    pub(super) async fn end(
        &self,
        next: Duration,
        found: Result<&[String], &str>,
    ) -> Result<bool, DatabaseError> {
        let end = || {
            self.query(include_str!("sql/end.sql"))
                .bind(self.process)
                .bind(interval(next))
                .bind(found.ok())
                .bind(found.err())
        };
        Ok(!self.store.run(end).await?.is_empty())
    }
}
