//! `migrate` creates the tables of `migrations/`, and replaces the functions in the database if they are older than
//! `functions.sql`.

use std::convert::Infallible;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Connection, PgConnection, PgPool, Row, SqlSafeStr};
use tokio::time::timeout;

use crate::tasks_and_errors::error_chain::ErrorChain;
use crate::tasks_and_errors::sqlx_error::is_not_permitted;
use crate::tasks_and_errors::stop_signal::first;
use crate::transaction::{DatabaseError, ShortTx};

const MIGRATIONS: [(&str, &str); 4] = [
    (
        "deliveries",
        include_str!("../../migrations/0001_deliveries.sql"),
    ),
    ("kept", include_str!("../../migrations/0002_kept.sql")),
    (
        "operation",
        include_str!("../../migrations/0003_operation.sql"),
    ),
    ("claim", include_str!("../../migrations/0004_claim.sql")),
];

/// The SQL functions that decide which problems an endpoint has. A new release may change them.
const FUNCTIONS: &str = include_str!("../../migrations/functions.sql");

/// The version of `FUNCTIONS`, as the comment at their end gives it.
const FUNCTIONS_VERSION: i32 = 1;

/// Reads the version of the functions in the database, or 0 if there are none.
const FUNCTIONS_THERE: &str = "
    select coalesce(
        substring(
            obj_description(to_regprocedure('idempotent_webhook.endpoint_problems(text[])'), 'pg_proc')
            from '[0-9]+'
        )::int,
        0
    )
";

const APPLIED: &str = "
    select version, checksum
    from idempotent_webhook.migrations
    where success
    order by version
";

const SESSION: &str = "select pg_backend_pid()";

/// Reads which sessions block the session `$1`. If such a session belongs to another role, Postgres may hide its state,
/// but nothing else.
const HOLDERS: &str = "
    select holder.pid, activity.application_name, activity.state
    from unnest(pg_blocking_pids($1)) as holder (pid)
    left join pg_stat_activity as activity on activity.pid = holder.pid
";

/// How often a wait for another session is reported.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum time for all migrations, including the wait for another process that runs migrations.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// How long closing the connection gracefully may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates or updates the crate's tables.
///
/// The tables and the history of their migrations are in the schema `idempotent_webhook`, so they do not interfere with
/// an application's own `sqlx::migrate!()` on the same database, regardless of which runs first. Calling this again
/// changes nothing. Several processes may call this at once. In each database, sqlx runs one migration at a time, and
/// this includes the application's own migrations. So this call may wait, for an hour at most. While it waits, it logs
/// every ten seconds, at WARN, which session it waits for.
///
/// A database that a later version has migrated is left as it is: within a major version, older versions also work with
/// later tables and functions. So an old process can start during a deploy, and after a rollback.
///
/// The role needs the right to create a schema, unless the tables and functions are up to date. If the application's
/// role lacks this right, call this with the owner's role first, and grant these rights:
///
/// ```sql
/// grant usage on schema idempotent_webhook to app;
/// grant select, insert, update, delete on all tables in schema idempotent_webhook to app;
/// ```
///
/// If your application uses PgBouncer in transaction mode, run this on a direct connection to Postgres, because sqlx
/// takes a session-level advisory lock.
///
/// # Errors
///
/// [`MigrateError::Execute`] with [`sqlx::Error::Configuration`] for a database whose encoding cannot store every
/// delivery id, because it is not UTF-8. [`MigrateError::VersionMismatch`] for tables of an unreleased version, and for
/// a migration that was changed by hand. Any other error comes from sqlx's migrator. Each error is also logged at
/// ERROR, with its causes and, if it is known, what to do about it.
pub async fn migrate(pool: &PgPool) -> Result<(), MigrateError> {
    let migrated = run(pool).await;
    if let Err(error) = &migrated {
        tracing::error!(error = %ErrorChain(error), "`migrate` has failed{}", advice(error));
    }
    migrated
}

async fn run(pool: &PgPool) -> Result<(), MigrateError> {
    check_encoding(pool).await?;
    let migrations = (1..).zip(MIGRATIONS).map(|(version, (name, sql))| {
        let sql = sql.into_sql_str();
        Migration::new(version, name.into(), MigrationType::Simple, sql, false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    // A later version may have applied migrations that this version does not know.
    migrator.set_ignore_missing(true);
    if is_up_to_date(pool, &migrator).await {
        return Ok(());
    }
    // sqlx would release its lock before the functions are created, so the lock is taken and released below.
    migrator.set_locking(false);
    migrator.create_schema("idempotent_webhook");
    migrator.dangerous_set_table_name("idempotent_webhook.migrations");
    // Dropping a detached connection closes it. So if Postgres stops responding, the connection does not stay occupied
    // in the pool.
    let mut connection = pool.acquire().await?.detach();
    let timed_out = || sqlx::Error::from(DatabaseError::TimedOut);
    let session = sqlx::query_scalar(SESSION).fetch_one(&mut connection);
    let session = timeout(LIMIT, session).await.map_err(|_| timed_out())??;
    let limit = async {
        let _ = timeout(LIMIT, report_holders(pool, session)).await;
    };
    // `lock` takes the advisory lock that sqlx uses for all migrations of this database. After an error, the session
    // ends, which releases the lock.
    let migrate = async {
        connection.lock().await?;
        migrator.run_direct(None, &mut connection, false).await?;
        replace_functions(&mut connection).await?;
        connection.unlock().await
    };
    first(limit, migrate).await.ok_or_else(timed_out)??;
    let _ = timeout(CLOSE_TIMEOUT, connection.close()).await;
    Ok(())
}

/// Creates the functions, or replaces functions of an earlier version.
async fn replace_functions(connection: &mut PgConnection) -> sqlx::Result<()> {
    if !have_functions(connection).await? {
        // `raw_sql` sends all statements of `FUNCTIONS` in one message, so Postgres runs them in one transaction.
        sqlx::raw_sql(FUNCTIONS).execute(connection).await?;
    }
    Ok(())
}

/// Whether the database has the functions, in this version or a later one.
async fn have_functions(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let there: i32 = sqlx::query_scalar(FUNCTIONS_THERE)
        .fetch_one(connection)
        .await?;
    Ok(there >= FUNCTIONS_VERSION)
}

/// What to do about an error, as the end of the log message. Empty if that is not known.
fn advice(error: &MigrateError) -> &'static str {
    match error {
        MigrateError::VersionMismatch(_) => {
            ": the tables of the schema `idempotent_webhook` were made by a version that was never released, or a \
             migration was changed by hand: if you need nothing in them, drop the schema and call `migrate` again"
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
            if is_not_permitted(error) =>
        {
            ": the role needs the right to create a schema, or is not the owner of the tables: call `migrate` with the \
             owner's role first"
        }
        _ => "",
    }
}

/// While a session waits for other sessions, logs the other sessions every ten seconds.
async fn report_holders(pool: &PgPool, session: i32) -> Infallible {
    loop {
        tokio::time::sleep(PATIENCE).await;
        let holders = ShortTx::run(pool, async |tx| {
            sqlx::query_as(HOLDERS).bind(session).fetch_all(tx).await
        });
        let holders: Vec<(i32, Option<String>, Option<String>)> = holders.await.unwrap_or_default();
        for (pid, application, state) in holders {
            tracing::warn!(
                pid,
                application,
                state,
                "`migrate` waits for this session of Postgres: sqlx runs one migration at a time in a database, \
                 including the application's own"
            );
        }
    }
}

/// Whether the tables and the functions are up to date. This check works without the right to create a schema. If it
/// fails, it returns `false`, and sqlx's migrator decides.
async fn is_up_to_date(pool: &PgPool, migrator: &Migrator) -> bool {
    let applied = ShortTx::run(pool, async |tx| match have_functions(tx).await? {
        true => sqlx::query_as(APPLIED).fetch_all(tx).await,
        false => Ok(Vec::new()),
    });
    let applied: Vec<(i64, Vec<u8>)> = match applied.await {
        Ok(applied) => applied,
        Err(_) => return false,
    };
    let known = migrator
        .iter()
        .map(|migration| (migration.version, migration.checksum.to_vec()));
    // The migrations of a later version may follow.
    known.len() <= applied.len() && known.eq(applied.into_iter().take(MIGRATIONS.len()))
}

/// Checks that the database can store every delivery id. If it could not, every attempt at such a delivery would fail.
async fn check_encoding(pool: &PgPool) -> sqlx::Result<()> {
    let shown = sqlx::raw_sql("show server_encoding");
    let row = ShortTx::run(pool, async |tx| shown.fetch_one(tx).await).await?;
    let encoding: String = row.try_get(0)?;
    // SQL_ASCII stores any bytes.
    if ["UTF8", "SQL_ASCII"].contains(&&*encoding) {
        return Ok(());
    }
    let reason = format!(
        "the database has the encoding {encoding}, which cannot store every delivery id: \
         create it with `encoding 'UTF8'`"
    );
    Err(sqlx::Error::Configuration(reason.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::digest::sha256_hex;

    /// `migrate` replaces the functions in a database only if `FUNCTIONS_VERSION` is higher than their version.
    #[test]
    fn functions_that_have_changed_have_the_next_version() {
        assert_eq!(
            (FUNCTIONS_VERSION, &*sha256_hex(FUNCTIONS.as_bytes())),
            (
                1,
                "f73d5524b94cd94a8fc4091889148ce4ecc00bc5899e566623ff8b7975e197e8"
            ),
            "`migrations/functions.sql` has changed: give it the next version at its end, in `FUNCTIONS_VERSION`, and here"
        );
        assert!(FUNCTIONS.ends_with(&format!(" is 'version {FUNCTIONS_VERSION}';\n")));
    }
}
