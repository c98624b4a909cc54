//! The Postgres server under the tests, and a look at what is in it.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection};
use throwaway_postgres::{Durability, ThrowawayPostgres};

/// A durable server with the crate's tables and one for the effects of handlers.
pub struct Server {
    postgres: ThrowawayPostgres,
}

/// What is stored of one delivery, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Stored {
    pub claims: i64,
    pub effects: i64,
}

impl Server {
    pub async fn start() -> Self {
        let postgres = ThrowawayPostgres::start(Durability::Durable)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let pool = sqlx::PgPool::connect_with(postgres.options("postgres"))
            .await
            .unwrap();
        idempotent_webhook::migrate(&pool).await.unwrap();
        // Without a key, so that an effect that happens twice is seen.
        pool.execute(sqlx::raw_sql(
            "create table effects (delivery_id text);
             create table attempts (delivery_id text)",
        ))
        .await
        .unwrap();
        pool.close().await;
        Self { postgres }
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

    pub async fn stored(&self, delivery_id: &str) -> Stored {
        self.ask(|mut connection| async move {
            sqlx::query_as(
                "select
                    (select count(*) from idempotent_webhook.deliveries where delivery_id = $1)
                        as claims,
                    (select count(*) from effects where delivery_id = $1) as effects",
            )
            .bind(delivery_id)
            .fetch_one(&mut connection)
            .await
        })
        .await
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
