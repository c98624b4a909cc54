//! The Citus database at `CITUS_URL`: it is on the coordinator, and the tests may empty it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor, PgPool};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};

/// `None` if `CITUS_URL` is not set.
pub fn options() -> Option<PgConnectOptions> {
    let url = std::env::var("CITUS_URL").ok()?;
    Some(url.parse().expect("CITUS_URL is a URL of Postgres"))
}

/// There is only one database, so tests take turns. A test that needs two databases fails.
pub async fn turn() -> OwnedMutexGuard<()> {
    static TURNS: OnceCell<Arc<Mutex<()>>> = OnceCell::const_new();
    let turns = TURNS.get_or_init(async || Arc::default()).await.clone();
    let turn = tokio::time::timeout(Duration::from_secs(10), turns.lock_owned());
    turn.await.expect("a test can use one database only")
}

/// Drops what the previous test has left, including its connections and settings.
pub async fn empty(options: &PgConnectOptions) {
    let mut connection = options.connect().await.unwrap();
    connection
        .execute(sqlx::raw_sql(
            "do $$
             declare
                 statement text;
             begin
                 execute format('alter database %I reset all', current_database());
                 perform pg_terminate_backend(pid)
                 from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid()
                     and backend_type = 'client backend'
                     and application_name not like 'citus%' and application_name not like 'Citus%';
                 drop schema if exists idempotent_webhook cascade;
                 for statement in
                     select format('drop table public.%I cascade', tablename)
                     from pg_tables where schemaname = 'public'
                     union all
                     select format('drop routine %s cascade', oid::regprocedure)
                     from pg_proc
                     where pronamespace = 'public'::regnamespace
                         and not exists (
                             select from pg_depend where objid = pg_proc.oid and deptype = 'e'
                         )
                     union all
                     select format('drop sequence if exists public.%I cascade', sequencename)
                     from pg_sequences where schemaname = 'public'
                 loop
                     execute statement;
                 end loop;
             end $$",
        ))
        .await
        .unwrap();
}

/// Distributes the crate's tables as documented, and `effects` like a table of an application: on other workers than
/// the claims.
pub async fn distribute(pool: &PgPool) {
    pool.execute(sqlx::raw_sql(include_str!(
        "../../../src/documentation/citus.sql"
    )))
    .await
    .unwrap();
    pool.execute(
        "select create_distributed_table('effects', 'delivery_id', colocate_with => 'none')",
    )
    .await
    .unwrap();
}
