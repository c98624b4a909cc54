//! The crate's tables, beside the application's own migrations.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{PgPool, Row, SqlSafeStr};

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

const APPLIED: &str = "
    select version, checksum
    from idempotent_webhook.migrations
    where success
    order by version
";

/// Creates or updates the crate's tables.
///
/// The tables and the history of their migrations are in the schema `idempotent_webhook`, so they
/// do not interfere with an application's own `sqlx::migrate!()` on the same database, in either
/// order. Calling it again changes nothing. Several processes may call it at once.
///
/// A database that a later version has migrated is left as it is: within a major version, later tables are also right
/// for the versions before. So an old process starts during a deploy, and after a rollback.
///
/// The role needs the right to create a schema, unless the tables are up to date. If the
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
/// not UTF-8 and so cannot store every delivery id. Otherwise any error of sqlx's migrator, for
/// example for a migration that was changed by hand.
pub async fn migrate(pool: &PgPool) -> Result<(), MigrateError> {
    check_encoding(pool).await?;
    let migrations = (1..).zip(MIGRATIONS).map(|(version, (name, sql))| {
        let sql = sql.into_sql_str();
        Migration::new(version, name.into(), MigrationType::Simple, sql, false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    // Those of a later version.
    migrator.set_ignore_missing(true);
    if is_up_to_date(pool, &migrator).await {
        return Ok(());
    }
    migrator.create_schema("idempotent_webhook");
    migrator.dangerous_set_table_name("idempotent_webhook.migrations");
    migrator.run(pool).await
}

/// Whether there is nothing to do, which a role without the right to create a schema may find out.
/// Any doubt is left to sqlx.
async fn is_up_to_date(pool: &PgPool, migrator: &Migrator) -> bool {
    let applied: Result<Vec<(i64, Vec<u8>)>, _> = sqlx::query_as(APPLIED).fetch_all(pool).await;
    let Ok(applied) = applied else { return false };
    let known = migrator
        .iter()
        .map(|migration| (migration.version, migration.checksum.to_vec()));
    // Later ones may follow.
    known.len() <= applied.len() && known.eq(applied.into_iter().take(MIGRATIONS.len()))
}

/// Every attempt at a delivery would fail if the database could not store its id.
async fn check_encoding(pool: &PgPool) -> sqlx::Result<()> {
    let row = sqlx::raw_sql("show server_encoding")
        .fetch_one(pool)
        .await?;
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
