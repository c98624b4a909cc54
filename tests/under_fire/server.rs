//! The Postgres server of a test, and queries about its content.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection};
use throwaway_postgres::{Durability, ThrowawayPostgres, snapshot};

use crate::history::{History, Line, Recorder, now};

/// A durable server with the tables of the crate, a table for the effects of handlers, and a table that logs changes of
/// the delivery rows.
pub struct Server {
    postgres: ThrowawayPostgres,
}

/// The table of effects has no key, so an effect that happens twice shows up. Triggers log each change of a row in the
/// transaction that makes the change. A transaction belongs to `Retention` if it has taken the *turn* of `Retention`:
/// the permission to do a task that one process does at a time.
const TABLES: &str = "
    create table effects (delivery_id text);
    create table noted (delivery_id text, event text);

    create function note() returns trigger language plpgsql as $$
    begin
        insert into public.noted values (new.delivery_id, tg_argv[0]);
        return null;
    end
    $$;

    create function note_pruned() returns trigger language plpgsql as $$
    begin
        insert into public.noted
        select old.delivery_id, tg_argv[0]
        from idempotent_webhook.turns as turn
        where turn.task = 'retention' and turn.xmin = pg_current_xact_id()::xid;
        return null;
    end
    $$;

    -- If its claim is there, the delivery was not reprocessed: an attempt that did not know of its own commit has recorded
    -- a failure. Such a row ends as a duplicate.
    create function note_reprocessed() returns trigger language plpgsql as $$
    begin
        insert into public.noted
        select new.delivery_id, 'reprocessed'
        where not exists (
            select from idempotent_webhook.deliveries as claim
            where claim.endpoint = new.endpoint and claim.tenant = new.tenant
                and claim.delivery_id = new.delivery_id
        );
        return null;
    end
    $$;

    create trigger claimed after insert on idempotent_webhook.deliveries
        for each row execute function note('claimed');

    create trigger pruned after delete on idempotent_webhook.deliveries
        for each row execute function note_pruned('claim-pruned');

    create trigger kept after insert on idempotent_webhook.kept_deliveries
        for each row when (new.state = 'due') execute function note('kept');

    create trigger reprocessed after update on idempotent_webhook.kept_deliveries
        for each row when (old.state = 'processed' and new.state = 'due')
        execute function note_reprocessed();

    -- An attempt that takes the row sets `taken_by`.
    create trigger rescheduled after update on idempotent_webhook.kept_deliveries
        for each row when (
            old.state in ('due', 'dead') and new.state = 'due'
            and new.takes > old.takes and new.taken_by is null
        )
        execute function note('rescheduled');

    create trigger pruned after delete on idempotent_webhook.kept_deliveries
        for each row when (old.state = 'dead') execute function note_pruned('dead-pruned');

    create trigger discarded after insert or update on idempotent_webhook.discarded
        for each row execute function note('discarded');";

/// What was committed since $1, with the times of the commits, and the state of the kept rows at $2. Times are in
/// microseconds since 1970.
const COMMITTED: &str = "
    with committed as (
        select delivery_id, 'committed' as event, pg_xact_commit_timestamp(xmin) as at
        from effects
        union all
        select delivery_id, event, pg_xact_commit_timestamp(xmin) from noted
    ),
    timed as (
        select delivery_id, event, (extract(epoch from at) * 1000000)::bigint as at
        from committed
    ),
    ended as (
        select kept.delivery_id, coalesce(row.state, 'none') as state
        from (select distinct delivery_id from noted where event = 'kept') as kept
        left join idempotent_webhook.kept_deliveries as row using (delivery_id)
    )
    select delivery_id, event, at from timed where at >= $1
    union all
    select delivery_id, 'ended ' || state, $2 from ended";

/// Ends the turn of a process that was killed. Otherwise, the turn would end by itself minutes later.
const END_TURNS: &str = "
    with rounds as (
        update idempotent_webhook.turns
        set next_at = now()
        where task = 'reconciliation' and process is not null
        returning 1
    ),
    pruning as (
        update idempotent_webhook.turns
        set next_at = now()
        where task = 'retention'
    )
    select count(*) from rounds";

impl Server {
    pub async fn start() -> Self {
        Self::start_with([]).await
    }

    /// Starts a server like `start`, with additional environment variables.
    pub async fn start_with(environment: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let postgres = ThrowawayPostgres::start_with(Durability::Durable, environment)
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
        // This setting is read when the server starts.
        server.restart().await;
        server
    }

    fn options(&self) -> PgConnectOptions {
        self.postgres.options("postgres")
    }

    pub async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// Makes commits wait for this standby, or for no standby if the name is empty.
    pub async fn wait_for_standby(&self, name: &str) {
        let mut connection = self.connect().await;
        let set = format!("alter system set synchronous_standby_names = '{name}'");
        connection.execute(AssertSqlSafe(set)).await.unwrap();
        connection.execute("select pg_reload_conf()").await.unwrap();
    }

    /// The URL, for the applications' environment.
    pub fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    /// The Unix socket, for a proxy.
    pub fn socket(&self) -> std::path::PathBuf {
        let folder = self.options().get_socket().unwrap().clone();
        folder.join(".s.PGSQL.5432")
    }

    /// Repeats the query until there is an answer, since the server may be going down or coming up.
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
        self.crash();
        self.start_again().await;
    }

    pub fn crash(&self) {
        tokio::task::block_in_place(|| self.postgres.crash()).unwrap();
    }

    pub async fn start_again(&self) {
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

    /// The history until now, including what is committed.
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

    /// Ends all turns, as if the processes that have them had given them up. Returns how many reconciliation rounds
    /// this broke off.
    pub async fn end_turns(&self) -> i64 {
        self.count(END_TURNS).await
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.ask(|mut connection| async move {
            let sql = AssertSqlSafe(sql.to_owned());
            sqlx::query_scalar(sql).fetch_one(&mut connection).await
        })
        .await
    }

    /// All rows, in the form of [`throwaway_postgres::snapshot`].
    pub async fn snapshot(&self) -> String {
        self.ask(|mut connection| async move {
            snapshot(&mut connection, &["idempotent_webhook", "public"]).await
        })
        .await
    }

    /// Any delivery that is kept in one of these states, as its endpoint and its id.
    pub async fn any_kept(&self, states: &str) -> Option<(String, String)> {
        let sql = format!(
            "select endpoint, delivery_id
             from idempotent_webhook.kept_deliveries
             where state in ({states})
             order by random()
             limit 1"
        );
        self.ask(|mut connection| {
            let sql = AssertSqlSafe(sql.clone());
            async move { sqlx::query_as(sql).fetch_optional(&mut connection).await }
        })
        .await
    }

    /// Waits until a count is above zero.
    pub async fn until(&self, sql: &str) {
        for _ in 0..3000 {
            if self.count(sql).await > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("waited too long for: {sql}");
    }

    /// Waits until no connection is in a transaction. After a time limit, returns how many connections still are.
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
