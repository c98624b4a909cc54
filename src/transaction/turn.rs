//! Whose turn it is in a task that one process does for all: a row for each task.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use super::short_tx::ShortTx;
use crate::pg_time::interval;
use crate::random::random;

const END: &str = "
    delete from idempotent_webhook.turns
    where name = $1 and process = $2
";

/// A turn in a task, for a process that takes it.
pub(crate) struct Turn {
    name: &'static str,
    /// How long it lasts, unless it is taken again before.
    lasts: Duration,
    /// A random number, so that each turn is of a process of its own.
    process: i64,
}

impl Turn {
    pub(crate) fn of(name: &'static str, lasts: Duration) -> Self {
        Self {
            name,
            lasts,
            process: random().cast_signed(),
        }
    }

    /// Takes the turn or, if it was taken before, extends it, in the transaction of what is done in it. Returns whether
    /// nobody else has it.
    pub(crate) async fn take(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        self.take_if(false, connection).await
    }

    /// Takes the turn, whoever has it.
    pub(crate) async fn take_over(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        self.take_if(true, connection).await
    }

    async fn take_if(&self, forced: bool, connection: &mut PgConnection) -> sqlx::Result<bool> {
        let taken = sqlx::query(include_str!("take_turn.sql"))
            .bind(self.name)
            .bind(self.process)
            .bind(interval(self.lasts))
            .bind(forced);
        Ok(taken.fetch_optional(connection).await?.is_some())
    }

    /// Ends the turn, so that another process can take it now.
    pub(crate) async fn end(&self, pool: &PgPool) -> sqlx::Result<()> {
        ShortTx::run(pool, async |tx| {
            let ended = sqlx::query(END).bind(self.name).bind(self.process);
            ended.execute(tx).await.map(drop)
        })
        .await
    }
}
