//! The environment of a process, such as `production`, and the environment of a database, which is stored in a row of
//! the database. A restored or copied database contains the deliveries of the original. A process runs none of the
//! deliveries that are kept in a database of another environment.
//!
//! The statements that take a delivery, a task or a report check the environment themselves, because the environment
//! may have changed since this process last read it. These statements are `take.sql`, `take_turn.sql`,
//! `tell_change.sql` and `tell_death.sql`. `accept.sql` and `resend.sql` check the environment as well. Without that
//! check, the layer could acknowledge a delivery that no process runs. The environment that the code here reads is used
//! only for reports.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Row;
use tokio::time::Instant;

use super::pg_error::DatabaseError;
use super::store::Store;
use crate::metrics;
use crate::tasks_and_errors::background::spawn_once;

/// The longest name of an environment, in bytes.
const LONGEST: usize = 63;

/// How often a database of another environment is reported while nothing changes.
const REPORT_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// The shortest time between two reads of the database's environment that requests cause.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

const NAME_DATABASE: &str = "
    insert into idempotent_webhook.environment (name)
    select $1::text
    where $1::text is not null
    on conflict do nothing
";

/// Returns the environment of the database. If `$1` is another environment, records that a process of `$1` uses the
/// database.
const LOOK: &str = "
    with noted as (
        insert into idempotent_webhook.other_environments as known (name, seen_at)
        select coalesce($1, ''), now()
        where $1::text is distinct from (select name from idempotent_webhook.environment)
        on conflict (name) do update
        set seen_at = excluded.seen_at
        where known.seen_at not between now() - interval '20 seconds' and now()
    )
    select (select name from idempotent_webhook.environment) as name
";

const HAS_ENVIRONMENT: &str = "
    select exists (select from idempotent_webhook.environment)
";

const IS_HOME: &str = "
    select $1::text is not distinct from (select name from idempotent_webhook.environment)
";

/// The environment of a process. A recovery, its layers, and everything else that the recovery runs share it.
#[derive(Clone, Default)]
pub(crate) struct Environment(Arc<Inner>);

#[derive(Default)]
struct Inner {
    name: Mutex<Option<Arc<str>>>,
    /// Whether the database belonged to another environment when it was last looked at.
    is_elsewhere: AtomicBool,
    reported: Mutex<Option<Reported>>,
    looked_at: Mutex<Option<Instant>>,
}

/// What was reported last.
struct Reported {
    /// The environment of the database.
    found: Option<String>,
    at: Instant,
}

impl Environment {
    /// # Panics
    ///
    /// If the name is not a valid [name](check).
    #[track_caller]
    #[expect(clippy::panic, reason = "documented, and only at start")]
    pub(crate) fn set(&self, name: Arc<str>) {
        if let Err(problem) = check(&name) {
            panic!("{problem}");
        }
        *lock(&self.0.name) = Some(name);
    }

    pub(crate) fn name(&self) -> Option<Arc<str>> {
        lock(&self.0.name).clone()
    }

    /// Whether the database belonged to another environment when it was last looked at. This is only for reports.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.is_elsewhere.load(Ordering::Relaxed)
    }

    /// Reports that a database belongs to the environment `found`.
    fn report(&self, database: &str, found: Option<String>) {
        let own = self.name();
        let is_elsewhere = own.as_deref() != found.as_deref();
        self.0.is_elsewhere.store(is_elsewhere, Ordering::Relaxed);
        metrics::other_environment(database, is_elsewhere);
        let mut reported = lock(&self.0.reported);
        if !is_elsewhere {
            if reported.take().is_some() {
                tracing::info!(
                    database,
                    environment = own.as_deref(),
                    "webhooks: the database now belongs to the environment of this process"
                );
            }
            return;
        }
        let is_known = reported.as_ref().is_some_and(|reported| {
            reported.found == found && reported.at.elapsed() < REPORT_INTERVAL
        });
        if is_known {
            return;
        }
        tracing::error!(
            database,
            environment = own.as_deref().unwrap_or("(none)"),
            environment_of_database = found.as_deref().unwrap_or("(none)"),
            "webhooks: the database belongs to another environment than this process, which therefore runs no kept \
             delivery from it, asks no provider, deletes nothing and calls no hook: if the database is a copy, adopt \
             it with `recovery::adopt` or in the dashboard; if not, correct `Recovery::environment`"
        );
        *reported = Some(Reported {
            found,
            at: Instant::now(),
        });
    }
}

/// Checks the name of an environment, which is shown in logs, on pages and in rows.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    match name.len() {
        1..=LONGEST if name.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(()),
        _ => Err("the name of an environment has 1 to 63 visible ASCII characters, without spaces"),
    }
}

impl Store {
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn set_environment(&mut self, environment: &Environment) {
        self.environment = environment.clone();
    }

    /// Whether the database has an environment.
    pub(crate) async fn has_environment(&self) -> Result<bool, DatabaseError> {
        let (has_environment,): (bool,) = self.read_one(|| sqlx::query(HAS_ENVIRONMENT)).await?;
        Ok(has_environment)
    }

    /// Whether the database belongs to the environment of this process.
    pub(crate) async fn is_home(&self) -> Result<bool, DatabaseError> {
        let name = self.environment.name();
        let (is_home,): (bool,) = self
            .read_one(|| sqlx::query(IS_HOME).bind(name.as_deref()))
            .await?;
        if !is_home {
            self.look_soon();
        }
        Ok(is_home)
    }

    /// Like [`is_home`](Self::is_home), but a database without an environment gets the environment of this process.
    pub(crate) async fn is_home_or_unnamed(&self) -> Result<bool, DatabaseError> {
        Ok(self.is_home().await? || self.look_at_environment().await?)
    }

    /// Gives the database the environment of this process, if the process has one and the database has none. Reports a
    /// database that belongs to another environment. Returns whether it belongs to the environment of this process.
    pub(crate) async fn look_at_environment(&self) -> Result<bool, DatabaseError> {
        let name = self.environment.name();
        let rows = self
            .run_all(|| [NAME_DATABASE, LOOK].map(|sql| sqlx::query(sql).bind(name.as_deref())))
            .await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let found: Option<String> = row.try_get("name")?;
        let is_home = name.as_deref() == found.as_deref();
        let options = self.pool().connect_options();
        let database = options.get_database().unwrap_or_default();
        self.environment.report(database, found);
        Ok(is_home)
    }

    /// Calls [`look_at_environment`](Self::look_at_environment) in the background, after a statement has found a
    /// database of another environment. This process may run no task that checks the environment regularly.
    pub(crate) fn look_soon(&self) {
        let mut looked_at = lock(&self.environment.0.looked_at);
        if looked_at.is_some_and(|at| at.elapsed() < LOOK_INTERVAL) {
            return;
        }
        *looked_at = Some(Instant::now());
        let store = self.clone();
        spawn_once("environment", async move {
            if let Err(error) = store.look_at_environment().await {
                tracing::debug!(%error, "could not look at the environment of the webhook database");
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Environment").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deploy_1_a_name_is_bounded_and_printable() {
        let longest = "x".repeat(LONGEST);
        for name in ["production", "eu-1/staging", "<b>", &longest] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        let too_long = "x".repeat(LONGEST + 1);
        for name in ["", " ", "a b", "a\n", "pröd", "\u{202e}", "\0", &too_long] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }
}
