//! The position of a list in Postgres: how far the list is reconciled. Only the process that has the *turn*, the right
//! to run a round (`transaction/turn.rs`), changes the position.

use std::time::{Duration, SystemTime};

use sqlx::Row;

use super::bounds::{Bounds, Known, Limits, Span, Times};
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::progress::Progress;
use crate::transaction::pg_time::{interval, unix_time};
use crate::transaction::{DatabaseError, List, Store, Turn, keyed, with_timeout};

/// How long a process keeps the turn after each page.
pub(super) const TURN: Duration = Duration::from_secs(3 * 60);

/// For how long a provider is asked to send a delivery that does not arrive. After each such request, the provider
/// lists another attempt at the delivery. The next round finds that attempt, and asks again. Without this limit, rounds
/// would ask forever.
const LONGEST_REQUEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The stored row of a list, and this process's turn.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub(super) store: Store,
    turn: Turn,
    progress: Progress,
}

/// A round in progress.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) span: Span,
    /// The cursor of the page to continue with.
    pub(super) cursor: Option<String>,
    is_on_request: bool,
    /// How many missing deliveries are not yet counted in the row.
    pub(super) untold: u64,
}

/// A delivery that is neither processed nor kept nor discarded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    /// The index of the delivery among the deliveries that were looked up.
    pub(super) place: usize,
    /// Whether the delivery may have been processed, and its record deleted since.
    pub(super) may_be_deleted: bool,
    /// Whether the provider has been asked for the delivery for longer than `LONGEST_REQUEST`, without success.
    pub(super) asked_in_vain: bool,
}

impl Position {
    /// The position of a list. `every` is the longest time from one round to the next.
    pub(super) fn new(store: Store, list: List, every: Duration, progress: Progress) -> Self {
        let turn = Turn::of_list("reconciliation", list, TURN, every, store.environment());
        Self {
            store,
            turn,
            progress,
        }
    }

    pub(super) fn list(&self) -> &List {
        self.turn.list()
    }

    pub(super) async fn bounds(&self, limits: &Limits) -> Result<Bounds, DatabaseError> {
        let statement = || {
            let query = self.list().query(include_str!("sql/known.sql"));
            query.bind(limits.has_tenants)
        };
        let rows = self.store.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let round: (Option<f64>, Option<f64>) =
            (row.try_get("round_since")?, row.try_get("round_until")?);
        let known = Known {
            now: row.try_get("now")?,
            recorded_since: row.try_get("recorded_since")?,
            reconciled_until: row.try_get("reconciled_until")?,
            unfinished: round
                .0
                .zip(round.1)
                .map(|(since, until)| Times { since, until }),
            is_at_this_path: row.try_get("is_at_this_path")?,
            pruned_before: row.try_get("pruned_before")?,
        };
        Ok(Bounds::new(&known, limits))
    }

    /// Starts or resumes a round, on request or when it is due. Returns `None` if no round is due, or if another
    /// process has the turn.
    pub(super) async fn begin(
        &self,
        bounds: &Bounds,
        on_request: bool,
    ) -> Result<Option<Begun>, DatabaseError> {
        let begun = async {
            let mut tx = self.store.begin_short().await?;
            let is_its_turn = match on_request {
                true => self.turn.take_early(&mut tx).await?,
                false => self.turn.take(&mut tx).await?,
            };
            if !is_its_turn {
                tx.end();
                return Ok(None);
            }
            self.progress.within(TURN);
            let begin = self
                .list()
                .query(include_str!("sql/begin_round.sql"))
                .bind(bounds.recorded_since)
                .bind(bounds.reconciled_until)
                .bind(on_request)
                .bind(bounds.times.since)
                .bind(bounds.times.until)
                .bind(bounds.resumes)
                .bind(bounds.gap_since);
            let cursor = begin.fetch_one(&mut *tx).await?.try_get("cursor")?;
            tx.commit().await?;
            Ok(Some(Begun {
                span: bounds.span(),
                cursor,
                is_on_request: on_request,
                untold: 0,
            }))
        };
        with_timeout(self.store.timeout, begun).await
    }

    /// How long it is until a round may start or resume.
    pub(super) async fn wait(&self) -> Result<Duration, DatabaseError> {
        self.turn.wait(&self.store).await
    }

    /// Records how far the round has come and, if it waits, why. Returns whether this process still has the turn.
    pub(super) async fn go_on(
        &self,
        round: &mut Begun,
        waits: Option<&str>,
    ) -> Result<bool, DatabaseError> {
        self.progress.within(TURN);
        let noted = async {
            let mut tx = self.store.begin_short().await?;
            if !self.turn.extend(&mut tx).await? {
                tx.end();
                return Ok(false);
            }
            let progress = self
                .list()
                .query(include_str!("sql/note_progress.sql"))
                .bind(&round.cursor)
                .bind(round.untold.cast_signed())
                .bind(waits)
                .bind(round.is_on_request);
            progress.execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(true)
        };
        let is_its_turn = with_timeout(self.store.timeout, noted).await?;
        round.untold = 0;
        Ok(is_its_turn)
    }

    /// Ends a round that is complete. `left_out` says what could not be run. Returns whether the round left something
    /// out: a gap, or deliveries that could not be run.
    pub(super) async fn complete(
        &self,
        round: &Begun,
        next: Duration,
        left_out: Option<&str>,
    ) -> Result<bool, DatabaseError> {
        self.end(round, true, next, left_out, false).await
    }

    /// Ends a round that is not complete. The next round resumes it: at the first page if `anew` is set, otherwise at
    /// the current page.
    pub(super) async fn break_off(
        &self,
        round: &Begun,
        next: Duration,
        failure: &str,
        anew: bool,
    ) -> Result<(), DatabaseError> {
        self.end(round, false, next, Some(failure), anew)
            .await
            .map(drop)
    }

    async fn end(
        &self,
        round: &Begun,
        is_complete: bool,
        next: Duration,
        failure: Option<&str>,
        anew: bool,
    ) -> Result<bool, DatabaseError> {
        let (since, until) = (unix_time(round.span.since), unix_time(round.span.until));
        let ended = async {
            let mut tx = self.store.begin_short().await?;
            if !self.turn.end(next, &mut tx).await? {
                tx.end();
                return Ok(false);
            }
            if is_complete {
                let close_gap = self.list().query(include_str!("sql/close_gap.sql"));
                close_gap.bind(since).bind(until).execute(&mut *tx).await?;
            }
            let end = self
                .list()
                .query(include_str!("sql/end_round.sql"))
                .bind(is_complete)
                .bind(failure)
                .bind(anew)
                .bind(round.untold.cast_signed())
                .bind(round.is_on_request)
                .bind(since)
                .bind(until);
            let has_failed = end.fetch_one(&mut *tx).await?.try_get("has_failed")?;
            tx.commit().await?;
            Ok(has_failed)
        };
        with_timeout(self.store.timeout, ended).await
    }

    /// Gives up the turn, so that another process can resume the round at once.
    pub(super) async fn leave(&self) -> Result<(), DatabaseError> {
        let ended = async {
            let mut tx = self.store.begin_short().await?;
            self.turn.end(Duration::ZERO, &mut tx).await?;
            tx.commit().await
        };
        with_timeout(self.store.timeout, ended).await
    }

    /// Which of these deliveries are neither processed nor kept nor discarded, in the given order.
    pub(super) async fn unknown(
        &self,
        deliveries: &[(&Delivery, SystemTime)],
        grace: Duration,
    ) -> Result<Vec<Unknown>, DatabaseError> {
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
                .bind(&self.list().endpoint)
                .bind(&tenants)
                .bind(&ids)
                .bind(&times)
                .bind(interval(grace))
                .bind(interval(LONGEST_REQUEST))
        };
        let rows = self.store.run(statement).await?;
        let mut unknown = Vec::with_capacity(rows.len());
        for row in &rows {
            let place: i64 = row.try_get("place")?;
            let Ok(place) = usize::try_from(place - 1) else {
                continue;
            };
            unknown.push(Unknown {
                place,
                may_be_deleted: row.try_get("may_be_deleted")?,
                asked_in_vain: row.try_get("asked_in_vain")?,
            });
        }
        unknown.sort_unstable_by_key(|one| one.place);
        Ok(unknown)
    }

    /// Records that the provider was asked to send a delivery again. Returns whether this was the first time.
    pub(super) async fn note_asked(&self, delivery: &Delivery) -> Result<bool, DatabaseError> {
        let statement = || keyed(include_str!("sql/note_asked.sql"), delivery);
        Ok(!self.store.run(statement).await?.is_empty())
    }
}
