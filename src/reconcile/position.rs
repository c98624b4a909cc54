//! Whose turn it is to reconcile a list, and how far it is, in Postgres.

use std::time::{Duration, SystemTime};

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use crate::delivery::Delivery;
use crate::pg_time::{from_unix_time, interval, unix_time};
use crate::random::random;
use crate::transaction::{DatabaseError, Store};

/// For how long it is the turn of a process after each page.
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
    begins_at: f64,
    pub(super) span: Span,
    /// Whether there are events after the round before that are too old for this one.
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
    pub(super) redelivery_window: Duration,
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
                .bind(interval(limits.redelivery_window))
                .bind(limits.since.map(unix_time))
                .bind(limits.in_full)
        };
        let rows = self.store.run_on_any(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(Bounds {
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
            self.query(include_str!("sql/begin.sql"))
                .bind(bounds.begins_at)
                .bind(self.process)
                .bind(interval(TURN))
                .bind(unix_time(bounds.span.since))
                .bind(unix_time(bounds.span.until))
                .bind(now)
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

    /// Says how far the round is. Returns whether it is still its turn, which lasts for as long as it waits
    /// and some minutes more.
    pub(super) async fn go_on(
        &self,
        round: &Begun,
        missed: u64,
        wait: Option<(Duration, &str)>,
    ) -> Result<bool, DatabaseError> {
        let turn = wait.map_or(TURN, |(wait, _)| wait.saturating_add(TURN));
        let statement = || {
            self.query(include_str!("sql/turn.sql"))
                .bind(self.process)
                .bind(interval(turn))
                .bind(&round.cursor)
                .bind(missed.cast_signed())
                .bind(unix_time(round.span.since))
                .bind(unix_time(round.span.until))
                .bind(wait.map(|(_, reason)| reason))
        };
        Ok(!self.store.run_on_any(statement).await?.is_empty())
    }

    /// The round is complete. `left_out` says what could not be run.
    pub(super) async fn complete(
        &self,
        round: &Begun,
        next: Duration,
        left_out: Option<&str>,
    ) -> Result<(), DatabaseError> {
        let until = Some(unix_time(round.span.until));
        self.end(until, next, left_out, true).await
    }

    /// The round is not complete: the next one goes on with it, with its first page or where it is.
    pub(super) async fn break_off(
        &self,
        next: Duration,
        failure: Option<&str>,
        anew: bool,
    ) -> Result<(), DatabaseError> {
        self.end(None, next, failure, anew).await
    }

    async fn end(
        &self,
        until: Option<f64>,
        next: Duration,
        failure: Option<&str>,
        anew: bool,
    ) -> Result<(), DatabaseError> {
        let statement = || {
            self.query(include_str!("sql/end.sql"))
                .bind(self.process)
                .bind(interval(next))
                .bind(until)
                .bind(failure)
                .bind(anew)
        };
        self.store.run_on_any(statement).await.map(drop)
    }

    /// Which of these deliveries are missing: their places.
    pub(super) async fn missing(
        &self,
        deliveries: &[&Delivery],
    ) -> Result<Vec<usize>, DatabaseError> {
        let tenants: Vec<&str> = deliveries.iter().map(|one| one.key_tenant()).collect();
        let ids: Vec<&str> = deliveries.iter().map(|one| one.id().as_str()).collect();
        let statement = || {
            sqlx::query(include_str!("sql/missing.sql"))
                .bind(&self.endpoint)
                .bind(&tenants)
                .bind(&ids)
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
