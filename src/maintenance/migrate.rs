//! `migrate` creates the tables of `migrations/`, and replaces its `functions.sql` if that is older.

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

/// What is a problem of an endpoint, which a release may change.
const FUNCTIONS: &str = include_str!("../../migrations/functions.sql");

/// That of `FUNCTIONS`, at its end.
const FUNCTIONS_VERSION: i32 = 1;

/// The version of the functions in the database.
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

/// The sessions that hold what a session waits for. For another role's session, only the state may be hidden.
const HOLDERS: &str = "
    select holder.pid, activity.application_name, activity.state
    from unnest(pg_blocking_pids($1)) as holder (pid)
    left join pg_stat_activity as activity on activity.pid = holder.pid
";

/// How often it is reported that it waits for another session.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest time of all migrations, and of the wait for another process that runs them.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The longest time of a graceful end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates or updates the crate's tables.
///
/// The tables and the history of their migrations are in the schema `idempotent_webhook`, so they
/// do not interfere with an application's own `sqlx::migrate!()` on the same database, in either
/// order. Calling it again changes nothing. Several processes may call it at once: sqlx runs one migration of a
/// database at a time, including the application's own, so this may wait, for an hour at most. Every ten seconds it
/// logs at WARN for which session it waits.
///
/// A database that a later version has migrated is left as it is: within a major version, later tables and functions are also
/// right for the versions before. So an old process starts during a deploy, and after a rollback.
///
/// The role needs the right to create a schema, unless the tables and functions are up to date. If the
/// application's role has fewer rights, call this with the owner's role first, and grant these:
///
/// ```sql
/// grant usage on schema idempotent_webhook to app;
/// grant select, insert, update, delete on all tables in schema idempotent_webhook to app;
/// ```
///
/// Behind PgBouncer in transaction mode, run it on a direct connection: sqlx takes an
/// advisory lock of the session.
///
/// # Errors
///
/// [`MigrateError::Execute`] with [`sqlx::Error::Configuration`] for a database whose encoding is
/// not UTF-8 and so cannot store every delivery id. [`MigrateError::VersionMismatch`] for tables of an unreleased
/// version, and for a migration that was changed by hand. Otherwise any error of sqlx's migrator. Each error is also
/// logged at ERROR, with its causes, and what to do about it if that is known.
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
    // The migrations of a later version.
    migrator.set_ignore_missing(true);
    if is_up_to_date(pool, &migrator).await {
        return Ok(());
    }
    // The lock is held for longer: until the functions are there.
    migrator.set_locking(false);
    migrator.create_schema("idempotent_webhook");
    migrator.dangerous_set_table_name("idempotent_webhook.migrations");
    // Detached from the pool, so a peer that falls silent does not keep a place. Dropped, it is closed.
    let mut connection = pool.acquire().await?.detach();
    let timed_out = || sqlx::Error::from(DatabaseError::TimedOut);
    let session = sqlx::query_scalar(SESSION).fetch_one(&mut connection);
    let session = timeout(LIMIT, session).await.map_err(|_| timed_out())??;
    let limit = async {
        let _ = timeout(LIMIT, report_holders(pool, session)).await;
    };
    // The lock of every sqlx migration of the database. After an error, the session ends, and so does its lock.
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

/// Replaces the functions if those in the database are of an earlier version.
async fn replace_functions(connection: &mut PgConnection) -> sqlx::Result<()> {
    if !have_functions(connection).await? {
        // Its statements are one message, and so one transaction.
        sqlx::raw_sql(FUNCTIONS).execute(connection).await?;
    }
    Ok(())
}

/// Whether the functions are there, of this version or of a later one.
async fn have_functions(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let there: i32 = sqlx::query_scalar(FUNCTIONS_THERE)
        .fetch_one(connection)
        .await?;
    Ok(there >= FUNCTIONS_VERSION)
}

/// What to do about an error, to be written behind it. Empty if that is not known.
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

/// Logs for which other sessions a session waits, again and again.
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
                "`migrate` waits for this session of Postgres: sqlx runs one migration at a time in a database, also \
                 the application's own"
            );
        }
    }
}

/// Whether there is nothing to do. A role needs no right to create a schema to find that out.
/// Any doubt is left to sqlx.
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
    // Later ones may follow.
    known.len() <= applied.len() && known.eq(applied.into_iter().take(MIGRATIONS.len()))
}

/// Every attempt at a delivery would fail if the database could not store its id.
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

    /// `migrate` replaces the functions of a database only if its own have a higher version.
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
