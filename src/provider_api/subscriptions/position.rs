//! What the last comparison of a subscription found, and which process compares next. Both are stored in Postgres.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;

use crate::layer::settings::Settings;
use crate::transaction::pg_time::interval;
use crate::transaction::{DatabaseError, List, Store, Turn, with_timeout};

/// How long a process has the turn, which is the right to compare. This is longer than a comparison takes.
const TURN: Duration = Duration::from_secs(5 * 60);

/// The stored row of a subscription, and this process's turn.
pub(super) struct Position {
    pub(super) store: Store,
    /// The version of the application.
    version: Arc<str>,
    turn: Turn,
}

/// What a process reads before it compares.
pub(super) struct Look {
    /// How many differences the last comparisons found, over all lists of the endpoint.
    pub(super) differences: i64,
    /// How long it is until this process may take the turn.
    pub(super) wait: Duration,
}

impl Position {
    /// The position of a list. `longest` is the longest time from one comparison to the next.
    pub(super) fn new(
        settings: &Settings,
        address: String,
        source: String,
        longest: Duration,
    ) -> Self {
        let list = List {
            endpoint: settings.verification.endpoint.to_string(),
            address,
            source,
        };
        Self {
            store: settings.store.clone(),
            version: settings.version.clone(),
            turn: Turn::of_list(
                "subscription",
                list,
                TURN,
                longest,
                settings.store.environment(),
            ),
        }
    }

    pub(super) fn list(&self) -> &List {
        self.turn.list()
    }

    pub(super) async fn look(&self) -> Result<Look, DatabaseError> {
        let look = || {
            self.list()
                .query(include_str!("sql/look.sql"))
                .bind(&*self.version)
                .bind(interval(self.turn.longest()))
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

    /// Takes the turn. Returns what the last comparison found, or `None` if this process cannot have the turn now.
    pub(super) async fn begin(&self) -> Result<Option<Vec<String>>, DatabaseError> {
        let begun = async {
            let mut tx = self.store.begin_short().await?;
            if !self.turn.take(&mut tx).await? {
                tx.end();
                return Ok(None);
            }
            let begin = self.list().query(include_str!("sql/begin.sql"));
            let row = begin.bind(&*self.version).fetch_one(&mut *tx).await?;
            tx.commit().await?;
            let before: Option<Vec<String>> = row.try_get("differences")?;
            Ok(Some(before.unwrap_or_default()))
        };
        with_timeout(self.store.timeout, begun).await
    }

    /// Ends the turn, and stores what was found, or why the provider could not be asked. Returns whether this process
    /// still had the turn.
    pub(super) async fn end(
        &self,
        next: Duration,
        found: Result<&[String], &str>,
    ) -> Result<bool, DatabaseError> {
        let ended = async {
            let mut tx = self.store.begin_short().await?;
            if !self.turn.end(next, &mut tx).await? {
                tx.end();
                return Ok(false);
            }
            let end = self.list().query(include_str!("sql/end.sql"));
            let end = end.bind(found.ok()).bind(found.err());
            end.execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(true)
        };
        with_timeout(self.store.timeout, ended).await
    }
}
