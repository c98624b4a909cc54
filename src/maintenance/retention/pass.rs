//! One pass over the tables, which deletes old rows batch by batch.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;

use super::delete::{Batch, Old, Rows, Step};
use super::{Pruned, redelivery_window};
use crate::metrics;
use crate::tasks_and_errors::sqlx_error::is_conflict;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::{Environment, ShortTx, Turn};

/// How long a *turn*, the right of one process to run retention, lasts unless the next step extends it. A step ends
/// after two minutes at most, and the pause after it is three times as long as the step.
pub(super) const TURN: Duration = Duration::from_secs(10 * 60);

/// How often a step is tried again after a deadlock.
const MAX_CONFLICTS: usize = 10;

/// A limit that neither a step nor the pause after it exceeds.
const LONGEST_STEP: Duration = Duration::from_secs(6 * 60);

/// A round works for a quarter of the time: after each step it pauses three times as long as the step took.
const PAUSE: u32 = 3;

/// Why a pass ends early.
enum Halt {
    /// Another process has the turn, or the database belongs to another environment.
    HeldElsewhere,
    Stopped,
    Failed(sqlx::Error),
}

impl From<sqlx::Error> for Halt {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error)
    }
}

/// A pass over the tables.
pub(super) struct Pass<'a> {
    pool: &'a PgPool,
    older_than: Duration,
    /// If set, the content of deliveries that have been dead for this time is erased.
    erase_dead_after: Option<Duration>,
    round: Option<Round<'a>>,
}

/// The turn and the stop signal of a round of `Retention`. A pass of `prune` has neither.
struct Round<'a> {
    turn: Turn,
    stop: &'a mut Stop,
}

impl<'a> Pass<'a> {
    /// A pass without pauses.
    pub(super) fn complete(pool: &'a PgPool, older_than: Duration) -> Self {
        Self {
            pool,
            older_than,
            erase_dead_after: None,
            round: None,
        }
    }

    /// A pass with pauses, in one process at a time.
    pub(super) fn round(
        pool: &'a PgPool,
        older_than: Duration,
        erase_dead_after: Option<Duration>,
        environment: &Environment,
        stop: &'a mut Stop,
    ) -> Self {
        let turn = Turn::of("retention", TURN, environment);
        Self {
            pool,
            older_than,
            erase_dead_after,
            round: Some(Round { turn, stop }),
        }
    }

    /// Runs the pass. Returns `false` if the pass was left to another process.
    pub(super) async fn run(mut self, pruned: &mut Pruned) -> sqlx::Result<bool> {
        let ended = match self.all_tables(pruned).await {
            Ok(()) | Err(Halt::Stopped) => Ok(true),
            Err(Halt::HeldElsewhere) => Ok(false),
            Err(Halt::Failed(error)) => Err(error),
        };
        if let Some(round) = self.round {
            round.stop.takes(LONGEST_STEP);
            let end = async |tx: &mut PgConnection| round.turn.end(Duration::ZERO, tx).await;
            ShortTx::run(self.pool, end).await?;
        }
        ended
    }

    async fn all_tables(&mut self, pruned: &mut Pruned) -> Result<(), Halt> {
        let age = self.older_than;
        self.step(&Step::Records(age)).await?;
        self.may_take_a_step();
        for window in redelivery_window::all(self.pool).await? {
            let endpoint = &window.endpoint;
            let resolved = Step::Resolved(endpoint.clone());
            while self.step(&resolved).await?.is_full {}
            if let Some(age) = self.erase_dead_after {
                let erase = Step::Erase(endpoint.clone(), age);
                while self.step(&erase).await?.is_full {}
            }
            for rows in Rows::ALL {
                let age = match rows {
                    Rows::Archived => Duration::ZERO,
                    _ => window.age_limit(age),
                };
                self.delete_old(rows, endpoint, age, pruned).await?;
            }
        }
        Ok(())
    }

    async fn delete_old(
        &mut self,
        rows: Rows,
        endpoint: &Arc<str>,
        age: Duration,
        pruned: &mut Pruned,
    ) -> Result<(), Halt> {
        let mut since = None;
        loop {
            let endpoint = endpoint.clone();
            let old = Old {
                rows,
                endpoint,
                age,
                since,
            };
            let batch = self.step(&Step::Old(old)).await?;
            metrics::pruned(rows.table(), batch.deleted);
            match rows {
                Rows::Deliveries => pruned.deliveries += batch.deleted,
                Rows::Subjects => pruned.subjects += batch.deleted,
                Rows::Dead | Rows::Recorded => pruned.failures += batch.deleted,
                Rows::Erased | Rows::Archived | Rows::Discarded => {}
            }
            if !batch.is_full {
                return Ok(());
            }
            since = batch.last;
        }
    }

    /// Runs a step in a transaction of its own, and pauses after it.
    async fn step(&mut self, step: &Step) -> Result<Batch, Halt> {
        let mut conflicts = 0;
        loop {
            let started = Instant::now();
            match self.try_step(step).await {
                Ok(batch) => {
                    self.pause_after(started.elapsed()).await;
                    return Ok(batch);
                }
                Err(Halt::Failed(error)) if is_conflict(&error) && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                }
                Err(halt) => return Err(halt),
            }
        }
    }

    async fn try_step(&mut self, step: &Step) -> Result<Batch, Halt> {
        // The step runs in a transaction, because outside of one, PgBouncer may prepare a statement on one connection
        // and run it on another.
        if let Some(round) = &self.round
            && round.stop.is_asked()
        {
            return Err(Halt::Stopped);
        }
        self.may_take_a_step();
        let batch = ShortTx::run(self.pool, async |tx| {
            if let Some(round) = &self.round
                && !round.turn.take(tx).await?
            {
                return Ok(None);
            }
            step.run(tx).await.map(Some)
        });
        batch.await?.ok_or(Halt::HeldElsewhere)
    }

    /// Announces how long a step or the pause after it may take. A loop that takes longer than it has announced counts
    /// as stalled.
    fn may_take_a_step(&self) {
        if let Some(round) = &self.round {
            round.stop.takes(LONGEST_STEP);
        }
    }

    async fn pause_after(&mut self, worked: Duration) {
        if let Some(round) = &mut self.round {
            let _ = round.stop.rest(worked * PAUSE).await;
        }
    }
}
