//! The Postgres server under the tests, and a look at what is in it.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection};
use throwaway_postgres::{Durability, ThrowawayPostgres};

use crate::history::{History, Line, Recorder, now};

/// A durable server with the crate's tables, one for the effects of handlers, and one for what was ever kept.
pub struct Server {
    postgres: ThrowawayPostgres,
}

/// The effects have no key, so that one that happens twice is seen.
const TABLES: &str = "
    create table effects (delivery_id text);
    create table kept (delivery_id text, event text);

    create function note_kept() returns trigger language plpgsql as $$
    begin
        insert into public.kept values (new.delivery_id, tg_argv[0]);
        return null;
    end
    $$;

    create trigger kept after insert on idempotent_webhook.kept_deliveries
        for each row when (new.state = 'due') execute function note_kept('kept');

    create trigger reprocessed after update on idempotent_webhook.kept_deliveries
        for each row when (old.state = 'processed' and new.state = 'due')
        execute function note_kept('reprocessed');";

/// What is committed since $1, with the time of the commit, and how what was kept has ended, at $2. Times are in
/// microseconds since 1970.
const COMMITTED: &str = "
    with committed as (
        select delivery_id, 'claimed' as event, pg_xact_commit_timestamp(xmin) as at
        from idempotent_webhook.deliveries
        union all
        select delivery_id, 'committed', pg_xact_commit_timestamp(xmin) from effects
        union all
        select delivery_id, event, pg_xact_commit_timestamp(xmin) from kept
    ),
    timed as (
        select delivery_id, event, (extract(epoch from at) * 1000000)::bigint as at
        from committed
    ),
    ended as (
        select
            delivery_id,
            coalesce(
                (
                    select state
                    from idempotent_webhook.kept_deliveries as row
                    where row.delivery_id = kept.delivery_id
                ),
                (
                    select 'discarded'
                    from idempotent_webhook.discarded as row
                    where row.delivery_id = kept.delivery_id
                ),
                'none'
            ) as state
        from kept
        group by delivery_id
    )
    select delivery_id, event, at from timed where at >= $1
    union all
    select delivery_id, 'ended ' || state, $2 from ended";

impl Server {
    pub async fn start() -> Self {
        let postgres = ThrowawayPostgres::start(Durability::Durable)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let pool = sqlx::PgPool::connect_with(postgres.options("postgres"))
            .await
            .unwrap();
        idempotent_webhook::migrate(&pool).await.unwrap();
        pool.execute(sqlx::raw_sql(TABLES)).await.unwrap();
        pool.execute("alter system set track_commit_timestamp = on")
            .await
            .unwrap();
        pool.close().await;
        let server = Self { postgres };
        // That setting is read at the start.
        server.restart().await;
        server
    }

    fn options(&self) -> PgConnectOptions {
        self.postgres.options("postgres")
    }

    /// For the applications' environment.
    pub fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    /// The Unix socket, for a proxy.
    pub fn socket(&self) -> std::path::PathBuf {
        let folder = self.options().get_socket().unwrap().clone();
        folder.join(".s.PGSQL.5432")
    }

    /// Asks until there is an answer: the server may be on its way down or up again.
    async fn ask<T, F>(&self, query: impl Fn(PgConnection) -> F) -> T
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let mut tries = 0;
        loop {
            let answer = match self.options().connect().await {
                Ok(connection) => query(connection).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => return answer,
                Err(error) if tries == 1000 => panic!("{error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
            tries += 1;
        }
    }

    /// Crashes the server and starts it again.
    pub async fn restart(&self) {
        tokio::task::block_in_place(|| self.postgres.crash()).unwrap();
        self.postgres
            .start_again()
            .await
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Ends a backend as an administrator would.
    pub async fn terminate(&self, backend: i32) {
        self.ask(|mut connection| async move {
            sqlx::query("select pg_terminate_backend($1)")
                .bind(backend)
                .execute(&mut connection)
                .await
        })
        .await;
    }

    /// The history until now, with what is committed.
    pub async fn history(&self, recorder: &Recorder) -> History {
        let micros = |time: u64| i64::try_from(time).unwrap();
        let (began_at, now) = (micros(recorder.began_at()), micros(now()));
        let committed: Vec<(String, String, i64)> = self
            .ask(|mut connection| async move {
                sqlx::query_as(COMMITTED)
                    .bind(began_at)
                    .bind(now)
                    .fetch_all(&mut connection)
                    .await
            })
            .await;
        let lines = committed.into_iter().map(|(id, event, at)| Line {
            at: at.try_into().unwrap(),
            id,
            event: event.parse().unwrap(),
        });
        recorder.history(lines.collect())
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.ask(|mut connection| async move {
            let sql = AssertSqlSafe(sql.to_owned());
            sqlx::query_scalar(sql).fetch_one(&mut connection).await
        })
        .await
    }

    /// Waits until a count is above zero.
    pub async fn until(&self, sql: &'static str) {
        for _ in 0..500 {
            if self.count(sql).await > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("waited in vain: {sql}");
    }

    /// Waits until no connection is in a transaction, and returns how many still are when
    /// the patience ends.
    pub async fn left_in_transaction(&self) -> i64 {
        let mut left = 0;
        for _ in 0..500 {
            left = self
                .count(
                    "select count(*) from pg_stat_activity
                     where backend_type = 'client backend' and pid <> pg_backend_pid()
                         and xact_start is not null",
                )
                .await;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        left
    }
}
