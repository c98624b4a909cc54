//! A Postgres server for one test, and queries about the content of its tables.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};

/// The programs would create this table with a primary key. Here the table has no key, so only the claim prevents a
/// second payment for an event.
const WITHOUT_KEY: &str = "create table payments (event_id text not null, amount bigint)";

const IN_TRANSACTION: &str = "select count(*) from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid() and xact_start is not null";

pub struct Database {
    pub pool: PgPool,
    pub url: String,
    // This is the last field, so that it outlives the pool.
    _server: ThrowawayPostgres,
}

impl Database {
    /// # Panics
    ///
    /// If there is no server.
    pub async fn new() -> Self {
        let server = ThrowawayPostgres::start(Durability::Lossy).await;
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        let options = server.options("postgres");
        let folder = options.get_socket().expect("a socket").display();
        // All drivers understand a URL with the escaped path of the socket's folder.
        let folder = folder.to_string().replace('/', "%2F");
        let url = format!("postgres://{}@{folder}/postgres", options.get_username());
        let pool = PgPoolOptions::new().max_connections(3);
        let pool = pool.connect(&url).await.expect("it is ready");
        let database = Self {
            pool,
            url,
            _server: server,
        };
        database.run(WITHOUT_KEY).await;
        database
    }

    pub async fn run(&self, sql: &str) {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        query
            .execute(&self.pool)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The number that the query returns.
    pub async fn number(&self, sql: &str) -> i64 {
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        let number = query.fetch_one(&self.pool).await;
        number.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub async fn until(&self, sql: &str, number: i64) {
        let mut last = None;
        for _ in 0..3000 {
            last = Some(self.number(sql).await);
            if last == Some(number) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("waited in vain until {number} is the result of {sql}: it is {last:?}");
    }

    /// The events that have both a payment and a claim.
    pub async fn processed(&self) -> BTreeSet<String> {
        let sql = "select event_id from payments
            where exists (
                select from idempotent_webhook.deliveries
                where endpoint = 'billing' and tenant = '' and delivery_id = event_id
            )";
        let ids: Vec<String> = sqlx::query_scalar(sql)
            .fetch_all(&self.pool)
            .await
            .expect(sql);
        ids.into_iter().collect()
    }

    /// # Panics
    ///
    /// If an event has more than one payment.
    pub async fn assert_nothing_twice(&self) {
        let sql = "select event_id from payments group by event_id having count(*) > 1";
        let twice: Vec<String> = sqlx::query_scalar(sql)
            .fetch_all(&self.pool)
            .await
            .expect(sql);
        assert!(twice.is_empty(), "processed more than once: {twice:?}");
    }

    /// Waits until no program has an open transaction.
    pub async fn until_no_transaction_is_open(&self) {
        self.until(IN_TRANSACTION, 0).await;
    }
}
