//! Takes due deliveries, reads which are due, and records which endpoints a process recovers.

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};

use crate::recovery::liveness::Taker;
use crate::transaction::{DatabaseError, RowKeys, Store};

const IS_UNSERVED: &str = "
    select
    from idempotent_webhook.endpoint_problems(array[$1])
    where problem = 'unserved'
";

/// The most deliveries that `take.sql` takes at once.
pub(crate) const MOST_TAKEN: usize = 64;

/// Which deliveries `take.sql` chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// At most this many deliveries, and at most [`MOST_TAKEN`].
    pub(crate) limit: usize,
    /// Deliveries that were due at this time, in Unix seconds, instead of now.
    pub(crate) due_at: Option<f64>,
    /// Whether this is a probe, which takes a delivery although the breaker is open.
    pub(crate) is_probe: bool,
}

/// The next delivery of an endpoint, and what may hold it back.
pub(crate) struct Next {
    pub(crate) endpoint: String,
    /// The time until a delivery can be taken. `None` if there is no delivery, or the endpoint is paused.
    pub(crate) wait: Option<Duration>,
    /// How long the delivery has been due.
    pub(crate) overdue: Duration,
    /// Whether the breaker is open.
    pub(crate) is_open: bool,
    /// Whether attempts have failed since the last success.
    pub(crate) has_failures: bool,
}

impl FromRow<'_, PgRow> for Next {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let seconds =
            |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        Ok(Self {
            endpoint: row.try_get("endpoint")?,
            wait: row.try_get::<Option<f64>, _>("wait")?.map(seconds),
            overdue: seconds(row.try_get::<Option<f64>, _>("overdue")?.unwrap_or(0.0)),
            is_open: row.try_get("is_open")?,
            has_failures: row.try_get("has_failures")?,
        })
    }
}

impl Store {
    /// Takes due deliveries of an endpoint.
    pub(crate) async fn take(
        &self,
        endpoint: &str,
        wanted: Wanted,
        taker: &Taker,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        let environment = self.environment().name();
        let statement = || {
            sqlx::query(include_str!("take.sql"))
                .bind(endpoint)
                .bind(i64::try_from(wanted.limit).unwrap_or(i64::MAX))
                .bind(wanted.due_at)
                .bind(taker.number())
                .bind(wanted.is_probe)
                .bind(environment.as_deref())
        };
        self.run(statement).await
    }

    /// The kept requests of these deliveries.
    pub(crate) async fn requests(
        &self,
        endpoint: &str,
        keys: &RowKeys,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        let statement = || keys.bind(sqlx::query(include_str!("requests.sql")), endpoint);
        self.run(statement).await
    }

    /// The next delivery of each of these endpoints. Empty in a database that belongs to another environment.
    pub(crate) async fn next(&self, endpoints: &[&str]) -> Result<Vec<Next>, DatabaseError> {
        let environment = self.environment().name();
        let statement = || {
            sqlx::query(include_str!("next.sql"))
                .bind(endpoints)
                .bind(environment.as_deref())
        };
        self.read(statement).await
    }

    /// The time of the database, in Unix seconds.
    pub(crate) async fn time(&self) -> Result<f64, DatabaseError> {
        let statement = || sqlx::query("select extract(epoch from now())::float8");
        let (time,) = self.read_one(statement).await?;
        Ok(time)
    }

    /// Records that this process recovers these endpoints, and which of its background tasks have stopped.
    pub(crate) async fn serve(
        &self,
        endpoints: &[&str],
        stalled: &[&str],
    ) -> Result<(), DatabaseError> {
        let statement = || {
            let serve = sqlx::query(include_str!("serve.sql"));
            serve.bind(endpoints).bind(stalled)
        };
        self.run(statement).await.map(drop)
    }

    /// How many deliveries of these endpoints have failed and wait. Each row has the endpoint, the state, and the
    /// number, which is at most `limit`.
    pub(crate) async fn failing(
        &self,
        endpoints: &[&str],
        limit: i64,
    ) -> Result<Vec<(String, String, i64)>, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("failing.sql"))
                .bind(endpoints)
                .bind(limit)
        };
        self.read(statement).await
    }

    /// Whether deliveries of an endpoint are due, and no process recovers it.
    pub(crate) async fn is_unserved(&self, endpoint: &str) -> Result<bool, DatabaseError> {
        let statement = || sqlx::query(IS_UNSERVED).bind(endpoint);
        Ok(!self.run(statement).await?.is_empty())
    }

    /// The endpoints that no process recovered at the last look for problems, and how many due deliveries each one has,
    /// at most `limit`.
    pub(crate) async fn unserved(&self, limit: i64) -> Result<Vec<(String, i64)>, DatabaseError> {
        let statement = || sqlx::query(include_str!("unserved.sql")).bind(limit);
        self.read(statement).await
    }
}
