//! The position of a list in Postgres: how far it is reconciled, and which process has the turn.

use std::time::{Duration, SystemTime};

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use crate::delivery::Delivery;
use crate::pg_time::{from_unix_time, interval, unix_time};
use crate::random::random;
use crate::transaction::{DatabaseError, Store};

/// How long a process keeps the turn after each page.
pub(super) const TURN: Duration = Duration::from_secs(3 * 60);

/// The row of a list, as one process uses it.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub(super) store: Store,
    pub(super) endpoint: String,
    pub(super) path: String,
    pub(super) source: String,
    process: i64,
}

/// What a round looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Since when deliveries are recorded.
    recorded_since: f64,
    /// Since when events count.
    begins_at: f64,
    pub(super) span: Span,
    /// Whether events since the last round are too old for this one.
    pub(super) has_gap: bool,
}

/// The times of events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) since: SystemTime,
    pub(super) until: SystemTime,
}

/// How the bounds of a round are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) look_back: Duration,
    pub(super) grace: Duration,
    /// Whether deliveries belong to tenants.
    pub(super) has_tenants: bool,
    pub(super) since: Option<SystemTime>,
    /// Whether to look at what is reconciled, too.
    pub(super) in_full: bool,
}

/// A round that has begun or goes on.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) span: Span,
    /// The page to go on with.
    pub(super) cursor: Option<String>,
    pub(super) is_on_request: bool,
    /// How many missing deliveries are not counted in the row yet.
    pub(super) untold: u64,
}

impl Position {
    pub(super) fn new(store: Store, endpoint: String, path: String, source: String) -> Self {
        Self {
            store,
            endpoint,
            path,
            source,
            process: random().cast_signed(),
        }
    }

    fn query(&self, sql: &'static str) -> Query<'_, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(&self.endpoint)
            .bind(&self.path)
            .bind(&self.source)
    }

    pub(super) async fn bounds(&self, limits: &Limits) -> Result<Bounds, DatabaseError> {
        let statement = || {
            self.query(include_str!("sql/bounds.sql"))
                .bind(interval(limits.look_back))
                .bind(interval(limits.grace))
                .bind(limits.has_tenants)
                .bind(limits.since.map(unix_time))
                .bind(limits.in_full)
        };
        let rows = self.store.run_on_any(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(Bounds {
            recorded_since: row.try_get("recorded_since")?,
            begins_at: row.try_get("begins_at")?,
            span: Span {
                since: from_unix_time(row.try_get("since")?),
                until: from_unix_time(row.try_get("until")?),
            },
            has_gap: row.try_get("has_gap")?,
        })
    }

    /// Begins a round, now or when it is due. `None` if it is not due, or another process is in it.
    pub(super) async fn begin(
        &self,
        bounds: &Bounds,
        now: bool,
    ) -> Result<Option<Begun>, DatabaseError> {
        let statement = || {
            self.query(include_str!("sql/begin_round.sql"))
                .bind(bounds.recorded_since)
                .bind(self.process)
                .bind(interval(TURN))
                .bind(unix_time(bounds.span.since))
                .bind(unix_time(bounds.span.until))
                .bind(now)
                .bind(bounds.begins_at)
        };
        let rows = self.store.run_on_any(statement).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(Begun {
            span: Span {
                since: from_unix_time(row.try_get("since")?),
                until: from_unix_time(row.try_get("until")?),
            },
            cursor: row.try_get("cursor")?,
            is_on_request: now,
            untold: 0,
        }))
    }

    /// Until a round may begin, or go on.
    pub(super) async fn wait(&self) -> Result<Duration, DatabaseError> {
        let statement = || self.query(include_str!("sql/wait.sql"));
        let rows = self.store.run_on_any(statement).await?;
        let Some(row) = rows.first() else {
            return Ok(Duration::ZERO);
        };
        let seconds: f64 = row.try_get("seconds")?;
        Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
    }

    /// Records how far the round is and, if it waits, why. Returns whether this process still has the turn.
    pub(super) async fn go_on(
        &self,
        round: &mut Begun,
        waits: Option<&str>,
    ) -> Result<bool, DatabaseError> {
        let statement = || {
            self.query(include_str!("sql/extend_turn.sql"))
                .bind(self.process)
                .bind(interval(TURN))
                .bind(&round.cursor)
                .bind(round.untold.cast_signed())
                .bind(waits)
        };
        let is_its_turn = !self.store.run_on_any(statement).await?.is_empty();
        round.untold = 0;
        Ok(is_its_turn)
    }

    /// The round is complete. `left_out` says what could not be run.
    pub(super) async fn complete(
        &self,
        round: &Begun,
        next: Duration,
        left_out: Option<&str>,
    ) -> Result<(), DatabaseError> {
        self.end(round, true, next, left_out, false).await
    }

    /// The round is not complete. The next one resumes it, at its first page or where it is.
    pub(super) async fn break_off(
        &self,
        round: &Begun,
        next: Duration,
        failure: &str,
        anew: bool,
    ) -> Result<(), DatabaseError> {
        self.end(round, false, next, Some(failure), anew).await
    }

    async fn end(
        &self,
        round: &Begun,
        is_complete: bool,
        next: Duration,
        failure: Option<&str>,
        anew: bool,
    ) -> Result<(), DatabaseError> {
        let statement = || {
            self.query(include_str!("sql/end_round.sql"))
                .bind(self.process)
                .bind(interval(next))
                .bind(is_complete)
                .bind(failure)
                .bind(anew)
                .bind(round.untold.cast_signed())
                .bind(round.is_on_request)
        };
        self.store.run_on_any(statement).await.map(drop)
    }

    /// Gives up the turn, so that another process can resume the round at once.
    pub(super) async fn leave(&self) -> Result<(), DatabaseError> {
        let statement = || {
            self.query(include_str!("sql/end_turn.sql"))
                .bind(self.process)
        };
        self.store.run_on_any(statement).await.map(drop)
    }

    /// Which of these deliveries are missing: their places.
    pub(super) async fn missing(
        &self,
        deliveries: &[(&Delivery, SystemTime)],
        grace: Duration,
    ) -> Result<Vec<usize>, DatabaseError> {
        let tenants: Vec<&str> = deliveries.iter().map(|(one, _)| one.key_tenant()).collect();
        let ids: Vec<&str> = deliveries
            .iter()
            .map(|(one, _)| one.id().as_str())
            .collect();
        let times: Vec<f64> = deliveries
            .iter()
            .map(|(_, time)| unix_time(*time))
            .collect();
        let statement = || {
            sqlx::query(include_str!("sql/missing.sql"))
                .bind(&self.endpoint)
                .bind(&tenants)
                .bind(&ids)
                .bind(&times)
                .bind(interval(grace))
        };
        let rows = self.store.run_on_any(statement).await?;
        let mut places = Vec::with_capacity(rows.len());
        for row in &rows {
            let place: i64 = row.try_get("place")?;
            places.extend(usize::try_from(place - 1));
        }
        places.sort_unstable();
        Ok(places)
    }
}
