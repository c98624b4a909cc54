//! One pass over the tables, in which old rows are deleted batch by batch.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;

use super::ranges::{self, Numbers, Range, Table};
use super::records;
use super::turn::{Turn, Whose};
use super::{Pruned, interval};
use crate::metrics;
use crate::stop::Stop;
use crate::transaction::{BEGIN_APART, is_conflict};

/// Small enough that a claim never waits for long on a row that is being deleted.
const BATCH: i64 = 1000;

/// How often a step is tried again after a deadlock.
const MAX_CONFLICTS: usize = 10;

/// The longest pause, well below the duration of a turn.
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Long enough for another process to find out whose turn it is.
const A_MOMENT: Duration = Duration::from_millis(10);

/// Why a pass ends early.
enum Halt {
    /// Another process is pruning.
    NotOurTurn,
    /// Another process is finding out that it is not its turn.
    NotYet,
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
    round: Option<Round<'a>>,
}

/// The limits of a round of `Retention`.
struct Round<'a> {
    turn: Turn,
    /// The share of the time during which it works.
    share: f64,
    stop: &'a mut Stop,
}

impl<'a> Pass<'a> {
    /// A pass that reads everything, as fast as it can.
    pub(super) fn complete(pool: &'a PgPool, older_than: Duration) -> Self {
        Self {
            pool,
            older_than,
            round: None,
        }
    }

    /// A pass that reads only ranges with something to delete, in one process at a time.
    pub(super) fn round(
        pool: &'a PgPool,
        older_than: Duration,
        share: f64,
        stop: &'a mut Stop,
    ) -> Self {
        Self {
            pool,
            older_than,
            round: Some(Round {
                turn: Turn::new(),
                share,
                stop,
            }),
        }
    }

    /// Returns whether it was completed, and not left to another process.
    pub(super) async fn run(mut self, pruned: &mut Pruned) -> sqlx::Result<bool> {
        let ended = match self.all_tables(pruned).await {
            Ok(()) | Err(Halt::Stopped) => Ok(true),
            Err(Halt::NotOurTurn | Halt::NotYet) => Ok(false),
            Err(Halt::Failed(error)) => Err(error),
        };
        if let Some(round) = self.round {
            round.turn.end(self.pool).await?;
        }
        ended
    }

    async fn all_tables(&mut self, pruned: &mut Pruned) -> Result<(), Halt> {
        // Before the deliveries, by which resolved rows are found.
        self.table(&ranges::KEPT, &mut pruned.failures).await?;
        let archived = || records::delete_archived(BATCH);
        while self.number(archived).await? >= BATCH {}
        let age = interval(self.older_than);
        self.numbers(|| records::remember_pruned(age)).await?;
        self.table(&ranges::DELIVERIES, &mut pruned.deliveries)
            .await?;
        self.numbers(|| records::delete_old(age)).await?;
        // Not counted: they belong to the deliveries.
        self.table(&ranges::BODIES, &mut 0).await?;
        self.table(&ranges::SUBJECTS, &mut pruned.subjects).await
    }

    async fn table(&mut self, table: &Table, count: &mut u64) -> Result<(), Halt> {
        let age = interval(self.older_than);
        let size = || table.size();
        // Rows that are added meanwhile are not old.
        let pages = self.number(size).await?;
        if self.round.is_none() || pages <= ranges::ALWAYS_READ {
            for range in Range::all(pages) {
                self.delete_resolved(table, range).await?;
                let due = || table.is_due(range, age);
                if self.number(due).await? == 1 {
                    self.delete(table, range, count).await?;
                }
            }
            return Ok(());
        }
        let due = || table.due_ranges(pages, age);
        for range in self.numbers(due).await?.into_iter().map(Range) {
            self.delete_resolved(table, range).await?;
            if self.examine(table, range).await? {
                self.delete(table, range, count).await?;
                self.examine(table, range).await?;
            }
        }
        Ok(())
    }

    /// Records when the range has to be read again, and returns whether that is now.
    async fn examine(&mut self, table: &Table, range: Range) -> Result<bool, Halt> {
        let age = interval(self.older_than);
        let forget = || table.forget(range);
        self.numbers(forget).await?;
        let record = || table.record(range, age);
        Ok(self.number(record).await? == 1)
    }

    /// Deletes what is kept of a range whose deliveries were processed since.
    async fn delete_resolved(&mut self, table: &Table, range: Range) -> Result<(), Halt> {
        if table.name != ranges::KEPT.name {
            return Ok(());
        }
        for pages in range.pieces() {
            let resolved = || ranges::delete_resolved(&pages, BATCH);
            while self.number(resolved).await? >= BATCH {}
        }
        Ok(())
    }

    async fn delete(&mut self, table: &Table, range: Range, count: &mut u64) -> Result<(), Halt> {
        let age = interval(self.older_than);
        for pages in range.pieces() {
            loop {
                let batch = || table.delete_batch(&pages, age, BATCH);
                let deleted = self.number(batch).await?;
                *count += deleted.unsigned_abs();
                metrics::pruned(table.name, deleted.unsigned_abs());
                if deleted < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn number(&mut self, query: impl Fn() -> Numbers) -> Result<i64, Halt> {
        let numbers = self.numbers(query).await?;
        Ok(numbers.first().copied().unwrap_or_default())
    }

    /// One step: a statement in a transaction of its own, and a pause.
    async fn numbers(&mut self, query: impl Fn() -> Numbers) -> Result<Vec<i64>, Halt> {
        let mut conflicts = 0;
        loop {
            let started = Instant::now();
            match self.try_step(&query).await {
                Ok(numbers) => {
                    self.pause_after(started.elapsed()).await;
                    return Ok(numbers);
                }
                Err(Halt::NotYet) => tokio::time::sleep(A_MOMENT).await,
                Err(Halt::Failed(error)) if is_conflict(&error) && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                }
                Err(halt) => return Err(halt),
            }
        }
    }

    async fn try_step(&mut self, query: impl Fn() -> Numbers) -> Result<Vec<i64>, Halt> {
        // In a transaction, so that PgBouncer keeps the statement on one connection from its
        // preparation to its end.
        let mut tx = self.pool.begin_with(BEGIN_APART).await?;
        if let Some(round) = &mut self.round {
            if round.stop.is_asked() {
                return Err(Halt::Stopped);
            }
            let halt = match round.turn.take(&mut tx).await? {
                Whose::Ours => None,
                Whose::OursInAMoment => Some(Halt::NotYet),
                Whose::NotOurs => Some(Halt::NotOurTurn),
            };
            if let Some(halt) = halt {
                tx.rollback().await?;
                return Err(halt);
            }
        }
        let numbers = query().fetch_all(&mut *tx).await?;
        tx.commit().await?;
        if let Some(round) = &mut self.round {
            round.turn.committed();
        }
        Ok(numbers)
    }

    async fn pause_after(&mut self, worked: Duration) {
        if let Some(round) = &mut self.round {
            let pause = pause_after(worked, round.share);
            let _ = tokio::time::timeout(pause, round.stop.asked()).await;
        }
    }
}

/// The pause that makes the work this share of the time.
fn pause_after(worked: Duration, share: f64) -> Duration {
    worked.mul_f64(1.0 / share - 1.0).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_works_for_its_share_of_the_time() {
        let worked = Duration::from_millis(100);
        assert_eq!(pause_after(worked, 1.0), Duration::ZERO);
        assert_eq!(pause_after(worked, 0.25), 3 * worked);
        assert_eq!(pause_after(worked, 0.01).as_millis(), 9_900);
        assert_eq!(pause_after(Duration::from_secs(60), 0.01), MAX_PAUSE);
    }
}
