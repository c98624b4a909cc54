//! Whether a process is alive. A process that *takes* deliveries, that is, marks due deliveries as its own to run them,
//! writes *heartbeats* to the table `processes`. Each heartbeat has another value than the one before. Only heartbeats
//! decide whether a taken delivery may be taken again. Neither the age of its attempt nor any lock matters.
//!
//! Each process judges the others by its own clock, which never jumps. It deletes the row of a dead process, which
//! frees the deliveries that the dead process had taken:
//!
//! ```text
//!                    0 s   2 s   4 s   6 s   8 s   10 s  12 s
//! heartbeats of A     1     2     3    killed
//! heartbeats of B     1     2     3     4     5     6     7
//! B sees of A         1     2     3     3     3     3
//!                                 |<-- SILENCE -->| deleted
//! ```
//!
//! A delivery is taken under a random number, not under the process itself, because a living process can lose a
//! delivery that it has taken: the task of the attempt was dropped, or the answer to the statement that took it was
//! lost. A process replaces its number after each `TERM` (`numbers.rs`):
//!
//! ```text
//!           0 s          10 s         20 s                     last attempt ends
//! number 1  in use       draining ....................................| given up
//! number 2  announced    in use       draining ..| given up
//! number 3               announced    in use
//! ```
//!
//! - *announced*: the number is in `processes`, and not used yet. A statement of another process that started
//!   before the announcement does not know the number, and would see deliveries taken under it as free.
//! - *in use*: deliveries are taken under the number. The first number of a process is used as soon as it is in
//!   `processes`. At worst, a statement that started earlier takes the same delivery as well, and then the claim
//!   refuses the attempt that took it first.
//! - *draining*: attempts still hold the number. The process still writes heartbeats for the number, as for its other
//!   numbers.
//! - *given up*: the row of the number is deleted with the next heartbeat. After that, a delivery that was taken under
//!   the number and then lost is free.

mod numbers;
mod other_processes;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;

pub(crate) use numbers::Taker;
use numbers::{Message, Numbers};
use other_processes::{Heartbeats, OtherProcesses};

use super::shared::Shared;
use crate::tasks_and_errors::background::Background;
use crate::transaction::{DatabaseError, begin_own, with_timeout};

/// The time between two heartbeats.
const INTERVAL: Duration = Duration::from_secs(2);

/// A process is *fresh* for this long after a heartbeat. A fresh process may take a delivery, because there is time
/// for another heartbeat before it counts as dead. A process that is not fresh does not judge other processes,
/// because Postgres may have been down for all of them.
const FRESH: Duration = Duration::from_secs(4);

/// A process counts as dead once its heartbeat has not changed for this long.
const SILENCE: Duration = Duration::from_secs(6);

/// How long deliveries are taken under one number.
const TERM: Duration = Duration::from_secs(10);

/// The longest time that a heartbeat may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The longest time that connecting for a heartbeat may take. Two tries fit into `SILENCE`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The wait after a failed heartbeat, while this process is fresh.
const AGAIN: Duration = Duration::from_millis(250);

/// The longest time that a goodbye may take (`leave`). Without a goodbye, this process counts as dead after
/// `SILENCE`.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Begins the transaction of a heartbeat, whose commit does not wait for the disk. If a crash of Postgres loses a
/// heartbeat, the next heartbeat follows before the process counts as dead. A process that is lost or frozen in the
/// middle of a heartbeat keeps its row locked for two seconds, even if Postgres considers the connection alive for
/// longer.
const BEGIN: &str = concat!(
    begin_own!(),
    "; set local synchronous_commit = off; \
    set local lock_timeout = '1s'; \
    set local idle_in_transaction_session_timeout = '2s'"
);

/// The heartbeats of this process, and the heartbeats that it has seen of other processes.
pub(super) struct Liveness {
    pool: PgPool,
    /// The connection for heartbeats. It does not come from the pool, whose connections may all be in use for
    /// longer than `SILENCE`. The task that sends a heartbeat holds the lock.
    connection: tokio::sync::Mutex<Option<PgConnection>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    numbers: Numbers,
    other_processes: OtherProcesses,
    /// When the last heartbeat was written.
    written_at: Option<Instant>,
    task: Option<Background>,
}

impl Liveness {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            connection: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Waits until it knows whether each other process is alive. It does not wait for processes that appear
    /// meanwhile, because new numbers appear all the time.
    pub(super) async fn wait_until_known(&self) -> Result<(), DatabaseError> {
        let mut waited_for = None;
        loop {
            self.beat(&mut *self.connection.lock().await).await?;
            let unknown = self.state().other_processes.unknown();
            let waited_for = waited_for.get_or_insert_with(|| unknown.clone());
            waited_for.retain(|number| unknown.contains(number));
            if waited_for.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Stops taking deliveries for now. The numbers that no attempt holds are given up at once, and the other numbers
    /// once their attempts have ended.
    pub(super) async fn leave(&self) {
        let leaving = async {
            let mut place = self.connection.lock().await;
            let gives_up = self.state().numbers.leave();
            if gives_up {
                self.beat(&mut place).await?;
            }
            Ok(())
        };
        let goodbye = tokio::time::timeout(LEAVE_TIMEOUT, leaving).await;
        if let Err(error) = goodbye.unwrap_or(Err(DatabaseError::TimedOut)) {
            tracing::debug!(%error, "webhook recovery could not report that it has stopped: it counts as dead in a few \
                seconds");
        }
    }

    /// Sends a heartbeat, and reads the heartbeats of other processes. Returns how many numbers of dead processes
    /// it has deleted.
    async fn beat(&self, place: &mut Option<PgConnection>) -> Result<u64, DatabaseError> {
        // After an error, or if this future is dropped, the connection is closed.
        let mut connection = match place.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let message = self.state().numbers.message();
        let sent_at = Instant::now();
        let (connection, seen, dead) = with_timeout(TIMEOUT, async {
            sqlx::raw_sql(BEGIN).execute(&mut connection).await?;
            let seen = send(&message, &mut connection).await?;
            let silent = self.state().silent(&seen, sent_at);
            let dead = expire(&silent, &mut connection).await?;
            sqlx::raw_sql("commit").execute(&mut connection).await?;
            Ok((connection, seen, dead))
        })
        .await?;
        *place = Some(connection);
        self.state().note_written(&message, seen);
        Ok(dead)
    }

    /// Connects through a pool of one connection. This pool has the hooks of the application's pool, such as a hook
    /// that sets a role.
    async fn connect(&self) -> Result<PgConnection, DatabaseError> {
        let options = self.pool.options().clone();
        let own = options
            .min_connections(0)
            .max_connections(1)
            .connect_lazy_with((*self.pool.connect_options()).clone());
        // Boxed because it is a large future.
        let connecting = Box::pin(async { Ok(own.acquire().await?.detach()) });
        with_timeout(CONNECT_TIMEOUT, connecting).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a heartbeat, and returns the heartbeats of other processes.
async fn send(message: &Message, connection: &mut PgConnection) -> sqlx::Result<Heartbeats> {
    sqlx::query_as(include_str!("../kept/heartbeat.sql"))
        .bind(&message.numbers)
        .bind(&message.given_up)
        .bind(message.heartbeat)
        .fetch_all(connection)
        .await
}

/// Deletes the numbers of dead processes, and returns how many there were.
async fn expire(silent: &Heartbeats, connection: &mut PgConnection) -> sqlx::Result<u64> {
    if silent.is_empty() {
        return Ok(0);
    }
    let (numbers, heartbeats): (Vec<i64>, Vec<i64>) = silent.iter().copied().unzip();
    let expired = sqlx::query(include_str!("../kept/expire.sql"))
        .bind(numbers)
        .bind(heartbeats);
    Ok(expired.execute(connection).await?.rows_affected())
}

impl State {
    fn is_fresh(&self) -> bool {
        self.written_at.is_some_and(|at| at.elapsed() < FRESH)
    }

    /// The number under which a delivery may be taken now.
    fn taker(&self) -> Option<Taker> {
        self.numbers.in_use().filter(|_| self.is_fresh())
    }

    /// The numbers of dead processes. `sent_at` is a time before the heartbeats `seen` were read.
    fn silent(&self, seen: &Heartbeats, sent_at: Instant) -> Heartbeats {
        match self.is_fresh() {
            true => self.other_processes.silent(seen, sent_at),
            false => Vec::new(),
        }
    }

    /// Notes that the heartbeat is written, and that the heartbeats `seen` of other processes were read with it.
    fn note_written(&mut self, message: &Message, seen: Heartbeats) {
        if !self.is_fresh() {
            self.other_processes = OtherProcesses::default();
        }
        self.written_at = Some(Instant::now());
        self.numbers.note_written(message);
        self.other_processes.note(seen);
    }
}

impl Shared {
    /// The number under which deliveries are taken now.
    pub(super) async fn taker(self: &Arc<Self>) -> Result<Taker, DatabaseError> {
        let liveness = &self.liveness;
        if let Some(taker) = liveness.state().taker() {
            return Ok(taker);
        }
        // All callers that wait share one heartbeat.
        let place = tokio::time::timeout(TIMEOUT, liveness.connection.lock()).await;
        let mut place = place.map_err(|_| DatabaseError::TimedOut)?;
        loop {
            if let Some(taker) = liveness.state().taker() {
                return Ok(taker);
            }
            self.stay_alive();
            liveness.beat(&mut place).await?;
        }
    }

    /// Announces numbers, and sends heartbeats in the background. This goes on for as long as a handle exists, and
    /// deliveries are taken or attempts are running.
    pub(super) fn stay_alive(self: &Arc<Self>) {
        let mut state = self.liveness.state();
        state.numbers.start();
        // The runtime of an earlier task may have shut down.
        if state.task.as_ref().is_none_or(Background::has_ended) {
            let shared = Arc::downgrade(self);
            state.task = Some(Background::spawn("heartbeat", move |_| run(shared.clone())));
        }
    }

    /// Sends the next heartbeat in the background. Returns the time until the one after it, or `None` if this was
    /// the last one.
    async fn beat_in_background(&self) -> Option<Duration> {
        let liveness = &self.liveness;
        if liveness.pool.is_closed() {
            return None;
        }
        let mut place = liveness.connection.lock().await;
        let beaten = liveness.beat(&mut place).await;
        let mut state = liveness.state();
        if state.numbers.is_over() {
            // The next take starts another task.
            state.task = None;
            *place = None;
            return None;
        }
        match beaten {
            Ok(0) => {}
            Ok(_) => {
                tracing::info!(
                    "a webhook recovery process was silent for six seconds, so it counts as dead: its deliveries are \
                     taken over"
                );
                self.news.notify_waiters();
            }
            Err(error) => {
                tracing::debug!(%error, "a heartbeat of webhook recovery failed");
                if state.is_fresh() {
                    return Some(AGAIN);
                }
            }
        }
        Some(INTERVAL)
    }
}

async fn run(shared: Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        let Some(wait) = shared.beat_in_background().await else {
            return;
        };
        drop(shared);
        tokio::time::sleep(wait).await;
    }
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Liveness").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends the next heartbeat of this process, which reads the heartbeat of another one. Returns whether this process
    /// considers the other process dead.
    fn beat(state: &mut State, other: i64) -> bool {
        let message = state.numbers.message();
        let seen = vec![(1, other)];
        let silent = state.silent(&seen, Instant::now());
        state.note_written(&message, seen);
        !silent.is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_silent_judges_others_after_six_seconds_of_its_own_heartbeats() {
        let mut state = State::default();
        for before in [Duration::ZERO, FRESH] {
            tokio::time::advance(before).await;
            for (wait, expected) in [(0, false), (2, false), (2, false), (2, true), (2, true)] {
                tokio::time::advance(Duration::from_secs(wait)).await;
                assert_eq!(beat(&mut state, 7), expected);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_whose_heartbeat_changes_lives_whatever_it_is() {
        let mut state = State::default();
        for other in [5, 6, -7, 6, i64::MAX, 0, 1, 2] {
            assert!(!beat(&mut state, other));
            tokio::time::advance(INTERVAL).await;
        }
        assert!(state.other_processes.unknown().is_empty());
        for expected in [false, false, true] {
            assert_eq!(beat(&mut state, 2), expected);
            tokio::time::advance(INTERVAL).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_takes_nothing_once_its_last_heartbeat_is_old() {
        let mut state = State::default();
        state.numbers.start();
        assert!(state.taker().is_none());
        beat(&mut state, 1);
        assert!(state.taker().is_some());
        tokio::time::advance(FRESH).await;
        assert!(state.taker().is_none());
    }
}
