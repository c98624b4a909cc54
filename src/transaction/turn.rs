//! Turns. Some tasks are done by one process for all: reading a provider's list, retention, and the search for
//! problems. A *turn* says which process does the task now, and when the next turn may begin. There is one row for each
//! task.

use std::time::Duration;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::environment::Environment;
use super::pg_error::DatabaseError;
use super::pg_time::interval;
use super::store::Store;
use crate::tasks_and_errors::random::random;

const WAIT: &str = "
    select extract(epoch from next_at - now())::float8 as seconds
    from idempotent_webhook.turns
    where (task, endpoint, address, source) = ($1, $2, $3, $4) and next_at <= now() + $5 + interval '1 minute'
";

const EXTEND: &str = "
    update idempotent_webhook.turns
    set next_at = now() + $6
    where (task, endpoint, address, source) = ($1, $2, $3, $4)
        and process = $5
        and $7::text is not distinct from (select name from idempotent_webhook.environment)
    returning true
";

const END: &str = "
    update idempotent_webhook.turns
    set process = null, next_at = now() + $6
    where (task, endpoint, address, source) = ($1, $2, $3, $4)
        and process = $5
        and $7::text is not distinct from (select name from idempotent_webhook.environment)
    returning true
";

/// A turn at a task, for the process that takes it.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    task: &'static str,
    list: List,
    /// How long the turn lasts, unless it is extended.
    lasts: Duration,
    /// The longest time from one turn to the next.
    longest: Duration,
    /// A random number that identifies the process. Each `Turn` has its own number, so two turns of one process exclude
    /// each other as well.
    process: i64,
    /// The environment of the process. In a database that belongs to another environment, the process never gets the
    /// turn.
    environment: Environment,
}

/// The list that a task is about. The texts are empty if a task is not about a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) endpoint: String,
    /// The path of the route, or the address that the provider calls.
    pub(crate) address: String,
    /// The name of the list.
    pub(crate) source: String,
}

impl List {
    /// A query with the three texts of the list as its first arguments.
    pub(crate) fn query(&self, sql: &'static str) -> Query<'_, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(&self.endpoint)
            .bind(&self.address)
            .bind(&self.source)
    }
}

impl Turn {
    pub(crate) fn of(task: &'static str, lasts: Duration, environment: &Environment) -> Self {
        Self::of_list(task, List::default(), lasts, lasts, environment)
    }

    /// The turn at a task that is about a list. `every` is the longest time from the end of one turn to the next.
    pub(crate) fn of_list(
        task: &'static str,
        list: List,
        lasts: Duration,
        every: Duration,
        environment: &Environment,
    ) -> Self {
        Self {
            task,
            list,
            lasts,
            longest: every.max(lasts),
            process: random().cast_signed(),
            environment: environment.clone(),
        }
    }

    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Takes the turn, or extends it if this process already has it. `connection` must be in the transaction that also
    /// does the work. Returns `true` if this process gets the turn: the turn is due, no other process has it, and the
    /// database belongs to the environment of this process.
    pub(crate) async fn take(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        self.take_by(Some(self.process), false, connection).await
    }

    /// Like [`take`](Self::take), but also before the turn is due.
    pub(crate) async fn take_early(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        self.take_by(Some(self.process), true, connection).await
    }

    /// Takes a turn that ends with the transaction. The next turn is due after `lasts`. Returns whether this process
    /// gets the turn, as [`take`](Self::take) does or, if `is_early` is set, [`take_early`](Self::take_early).
    pub(crate) async fn take_once(
        &self,
        is_early: bool,
        connection: &mut PgConnection,
    ) -> sqlx::Result<bool> {
        self.take_by(None, is_early, connection).await
    }

    async fn take_by(
        &self,
        process: Option<i64>,
        is_early: bool,
        connection: &mut PgConnection,
    ) -> sqlx::Result<bool> {
        let taken = self
            .query(include_str!("take_turn.sql"))
            .bind(process)
            .bind(interval(self.lasts))
            .bind(interval(self.longest))
            .bind(is_early)
            .bind(self.environment.name().as_deref().map(str::to_owned));
        is_there(taken, connection).await
    }

    /// The time until a process may take the turn.
    pub(crate) async fn wait(&self, store: &Store) -> Result<Duration, DatabaseError> {
        let wait = || self.query(WAIT).bind(interval(self.longest));
        let rows = store.run(wait).await?;
        let Some(row) = rows.first() else {
            return Ok(Duration::ZERO);
        };
        let seconds: f64 = row.try_get("seconds")?;
        Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
    }

    /// Extends the turn. Returns whether this process still has it.
    pub(crate) async fn extend(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        self.set(EXTEND, self.lasts, connection).await
    }

    /// Ends the turn, so that the next one is due after `next`. Returns whether this process still had the turn.
    pub(crate) async fn end(
        &self,
        next: Duration,
        connection: &mut PgConnection,
    ) -> sqlx::Result<bool> {
        self.set(END, next, connection).await
    }

    /// Sets when the next turn is due. Returns whether this process still had the current turn.
    async fn set(
        &self,
        sql: &'static str,
        next: Duration,
        connection: &mut PgConnection,
    ) -> sqlx::Result<bool> {
        let set = self
            .query(sql)
            .bind(self.process)
            .bind(interval(next))
            .bind(self.environment.name().as_deref().map(str::to_owned));
        is_there(set, connection).await
    }

    fn query(&self, sql: &'static str) -> Query<'_, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(self.task)
            .bind(&self.list.endpoint)
            .bind(&self.list.address)
            .bind(&self.list.source)
    }
}

async fn is_there(
    statement: Query<'_, Postgres, PgArguments>,
    connection: &mut PgConnection,
) -> sqlx::Result<bool> {
    Ok(statement.fetch_optional(connection).await?.is_some())
}
