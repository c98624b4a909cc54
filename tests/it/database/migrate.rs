//! The crate's migrations next to the application's migrations.

use std::time::Duration;

use idempotent_webhook::migrate;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool, SqlSafeStr};

use crate::support::{Database, ONE_WAITS_FOR_A_LOCK, let_pass, logged, soon, until_logged};

/// Does what `sqlx::migrate!()` in an application does, with a table of the same name as the crate's.
async fn migrate_application(pool: &PgPool) {
    let migration = Migration::new(
        1,
        "application".into(),
        MigrationType::Simple,
        "create table deliveries (id int primary key)".into_sql_str(),
        false,
    );
    Migrator::with_migrations(vec![migration])
        .run(pool)
        .await
        .unwrap();
}

#[tokio::test]
async fn both_migrate_in_either_order_and_again() {
    for ours_first in [true, false] {
        let database = Database::empty().await;
        if ours_first {
            migrate(&database.pool).await.unwrap();
        }
        for _ in 0..2 {
            migrate_application(&database.pool).await;
            migrate(&database.pool).await.unwrap();
        }
        database
            .run(
                "insert into deliveries values (1);
                 insert into idempotent_webhook.deliveries (endpoint, delivery_id)
                 values ('a', 'b')",
            )
            .await;
    }
}

#[tokio::test]
async fn a_migration_that_fails_logs_why_and_what_to_do() {
    let database = Database::empty().await;
    let role = format!("plain_{}", database.name);
    database.run(&format!("create role {role} login")).await;
    let plain = database.options().username(&role);
    let nowhere = PgConnectOptions::new().host("127.0.0.1").port(1);
    for (options, texts) in [
        (
            plain,
            [
                "permission denied for database",
                "call `migrate` with the owner's role first",
            ],
        ),
        (
            nowhere,
            [
                "Postgres cannot be reached",
                "nothing listens at 127.0.0.1:1: ",
            ],
        ),
    ] {
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_secs(1))
            .connect_lazy_with(options);
        let log = logged(async {
            assert!(migrate(&pool).await.is_err());
        })
        .await;
        let failed = log
            .lines()
            .find(|line| line.contains("`migrate` has failed"));
        let failed = failed.unwrap_or_else(|| panic!("{log}"));
        assert!(failed.contains("ERROR"), "{failed}");
        for text in texts {
            assert!(failed.contains(text), "{text}: {failed}");
        }
        assert!(!failed.contains("at line"), "{failed}");
        pool.close().await;
    }
    database.run(&format!("drop role {role}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_may_migrate_at_once() {
    let database = Database::empty().await;
    let migrating: Vec<_> = (0..5)
        .map(|_| {
            let pool = database.pool.clone();
            tokio::spawn(async move { migrate(&pool).await })
        })
        .collect();
    for migrated in migrating {
        migrated.await.unwrap().unwrap();
    }
}

/// A session that holds the migration lock blocks every migration of the database. A killed process, for example, can
/// leave such a session behind.
#[tokio::test]
async fn a_migration_that_has_to_wait_says_for_whom() {
    let database = Database::empty().await;
    let options = database.options().application_name("left behind");
    let mut holder = options.connect().await.unwrap();
    holder.lock().await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(&mut holder)
        .await
        .unwrap();
    let pool = database.pool.clone();
    let log = logged(async {
        let migrating = tokio::spawn(async move { migrate(&pool).await });
        database.until(ONE_WAITS_FOR_A_LOCK).await;
        let_pass(Duration::from_secs(11)).await;
        until_logged("waits for this session").await;
        holder.unlock().await.unwrap();
        soon(migrating).await.unwrap().unwrap();
    })
    .await;
    let line = log
        .lines()
        .find(|line| line.contains("waits for this session"));
    let line = line.unwrap();
    for part in [
        "WARN".to_owned(),
        format!("pid={pid} "),
        "application=\"left behind\"".to_owned(),
        "state=\"idle\"".to_owned(),
    ] {
        assert!(line.contains(&part), "{line}");
    }
    migrate(&database.pool).await.unwrap();
}

/// If a migration wrote a row, `truncate` would remove it for good. Restoring only the data into migrated tables would
/// cause a conflict.
#[tokio::test]
async fn a_migration_writes_no_row() {
    let database = Database::new().await;
    let tables = "select quote_ident(tablename)
        from pg_tables
        where schemaname = 'idempotent_webhook' and tablename <> 'migrations'";
    let tables: Vec<String> = sqlx::query_scalar(tables)
        .fetch_all(&database.pool)
        .await
        .unwrap();
    assert!(tables.len() > 20, "{tables:?}");
    for table in tables {
        let rows = format!("select count(*) from idempotent_webhook.{table}");
        assert_eq!(database.count(&rows).await, 0, "{table}");
    }
}

/// During a deploy, or after a rollback, an old process can start on the tables of a later version.
#[tokio::test]
async fn the_tables_of_a_later_version_are_left_as_they_are() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.migrations (version, description, success, checksum, execution_time)
             values (9999, 'later', true, '', 0)",
        )
        .await;
    migrate(&database.pool).await.unwrap();

    // If one of this version's own migrations was changed, that is still an error, and the error says what to do.
    database
        .run("update idempotent_webhook.migrations set checksum = '' where version = 1")
        .await;
    let log = logged(async {
        let refused = migrate(&database.pool).await.unwrap_err();
        assert!(
            matches!(refused, MigrateError::VersionMismatch(1)),
            "{refused:?}"
        );
    });
    let log = log.await;
    assert!(
        log.contains("ERROR") && log.contains("drop the schema"),
        "{log}"
    );
}

/// Replaces a function with one of another version, which finds no problem.
async fn other_functions(database: &Database, version: i32) {
    database
        .run(&format!(
            "create or replace function idempotent_webhook.endpoint_problems(endpoints text[])
                 returns table (endpoint text, problem text, subject text)
                 language sql stable strict
                 as $$ select '', '', '' where false $$;
             comment on function idempotent_webhook.endpoint_problems(text[]) is 'version {version}'"
        ))
        .await;
}

const FUNCTIONS: &str = "
    select pg_get_functiondef(oid) || obj_description(oid, 'pg_proc')
    from pg_proc
    where pronamespace = 'idempotent_webhook'::regnamespace and proname = 'endpoint_problems'
";

async fn functions(database: &Database) -> String {
    sqlx::query_scalar(FUNCTIONS)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn functions_of_an_earlier_version_are_replaced_and_those_of_a_later_one_stay() {
    let database = Database::new().await;
    let new = functions(&database).await;
    assert!(new.contains("'unserved'"), "{new}");

    other_functions(&database, 0).await;
    migrate(&database.pool).await.unwrap();
    assert_eq!(functions(&database).await, new);

    // A restore may leave the functions without their comment.
    database
        .run("comment on function idempotent_webhook.endpoint_problems(text[]) is null")
        .await;
    migrate(&database.pool).await.unwrap();
    assert_eq!(functions(&database).await, new);

    // An old process starts during a deploy, or after a rollback.
    other_functions(&database, 99).await;
    let later = functions(&database).await;
    migrate(&database.pool).await.unwrap();
    assert_eq!(functions(&database).await, later);
}

/// An old process finds earlier functions, and waits while a new process replaces them.
#[tokio::test]
async fn a_process_that_has_waited_leaves_the_functions_of_a_later_version() {
    let database = Database::new().await;
    other_functions(&database, 0).await;
    let mut holder = database.options().connect().await.unwrap();
    holder.lock().await.unwrap();
    let pool = database.pool.clone();
    let migrating = tokio::spawn(async move { migrate(&pool).await });
    database.until(ONE_WAITS_FOR_A_LOCK).await;
    other_functions(&database, 99).await;
    let later = functions(&database).await;
    holder.unlock().await.unwrap();
    soon(migrating).await.unwrap().unwrap();
    assert_eq!(functions(&database).await, later);
}

/// Only the owner of the functions can replace them. Once they are up to date, a role that owns nothing may call
/// `migrate`.
#[tokio::test]
async fn functions_are_replaced_only_by_their_owner() {
    let database = Database::new().await;
    let role = format!("plain_{}", database.name);
    database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role};
             grant select on all tables in schema idempotent_webhook to {role}"
        ))
        .await;
    let pool = PgPool::connect_lazy_with(database.options().username(&role));
    migrate(&pool).await.unwrap();
    other_functions(&database, 0).await;
    assert!(migrate(&pool).await.is_err());
    pool.close().await;
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}

#[tokio::test]
async fn g2_a_database_that_cannot_hold_every_id_is_refused() {
    let database = Database::empty().await;
    let name = format!("{}_latin1", database.name);
    database
        .run(&format!(
            "create database {name} encoding 'LATIN1' template template0
                 lc_collate 'C' lc_ctype 'C'"
        ))
        .await;
    let pool = PgPool::connect_lazy_with(database.options().database(&name));
    let refused = migrate(&pool).await.unwrap_err();
    let MigrateError::Execute(sqlx::Error::Configuration(reason)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        reason.to_string(),
        "the database has the encoding LATIN1, which cannot store every delivery id: create it \
         with `encoding 'UTF8'`"
    );
}
