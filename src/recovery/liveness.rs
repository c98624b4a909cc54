//! Whether a process lives. A process that takes deliveries has a heartbeat every two seconds, in `processes`. Once another
//! process has seen no change of it for six seconds, by a clock of its own that never jumps, the first one counts as dead,
//! and what it has taken is free. Nothing else tells whether an attempt is under way: neither how long ago it began, nor a
//! lock.
//!
//! A delivery is taken under a number, not under the process itself, since a living process can lose what it has taken: the
//! task of the attempt was dropped, or the answer to the take was lost. A number is replaced every ten seconds:
//!
//! ```text
//!           0 s          10 s         20 s                     last attempt ends
//! number 1  in use       draining ....................................| given up
//! number 2  announced    in use       draining ..| given up
//! number 3               announced    in use
//! ```
//!
//! - *announced*: in `processes`, and not used yet. A statement of another process that began before the announcement
//!   would see its deliveries as free.
//! - *in use*: deliveries are taken under it.
//! - *draining*: attempts hold it. It has heartbeats as the others have.
//! - *given up*: its row is deleted with the next heartbeat. What was taken under it and lost is free.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row};
use tokio::time::Instant;

use super::shared::Shared;
use crate::background::Background;
use crate::random::random;
use crate::transaction::{DatabaseError, with_timeout};

/// A heartbeat that a crash of Postgres loses is followed by the next one before the process counts as dead. A process
/// that is lost or frozen in the midst of it holds its row for two seconds, and not for as long as Postgres believes in the
/// connection.
const BEGIN: &str = "begin isolation level read committed not deferrable; \
    set local synchronous_commit = off; \
    set local lock_timeout = '1s'; \
    set local idle_in_transaction_session_timeout = '2s'";

/// The time between two heartbeats.
const INTERVAL: Duration = Duration::from_secs(2);

/// The longest time that a heartbeat takes.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The same for its connection. Two tries fit into the time that a process may be silent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The wait after a heartbeat that has failed, while this process still counts as living.
const AGAIN: Duration = Duration::from_millis(250);

/// The longest time that a goodbye takes. Without one, this process counts as dead after it was silent.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A process that is silent for so long is dead.
const SILENCE: Duration = Duration::from_secs(6);

/// A process that was silent this long cannot judge the others: Postgres may have been down. Longer than the time between
/// two heartbeats.
const DEAF_AFTER: Duration = Duration::from_secs(4);

/// A process whose last heartbeat is not older than this can take a delivery, and have another heartbeat before it counts
/// as dead.
const FRESH: Duration = Duration::from_secs(4);

/// For how long deliveries are taken under one number.
const TERM: Duration = Duration::from_secs(10);

/// A number under which deliveries are taken. An attempt holds it until its result is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Taker(Arc<i64>);

impl Taker {
    fn new() -> Self {
        Self(Arc::new(random().cast_signed()))
    }

    pub(crate) fn number(&self) -> i64 {
        *self.0
    }

    /// Whether an attempt holds it. No attempt gets one that is draining.
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The life of this process, and what it has seen of other processes.
pub(super) struct Liveness {
    pool: PgPool,
    /// Apart from the pool, whose connections may all be in use for longer than a process may be silent. Locked by the task
    /// that sends a heartbeat.
    connection: tokio::sync::Mutex<Option<PgConnection>>,
    state: Mutex<State>,
}

struct State {
    in_use: Taker,
    /// Since when `in_use` is given to attempts.
    since: Instant,
    announced: Taker,
    /// The number that a heartbeat announces after it. It stays until the answer has come: otherwise it could be announced
    /// and forgotten, and be taken for that of a dead process.
    next: Option<Taker>,
    draining: Vec<Taker>,
    /// Whether this process takes deliveries. Otherwise it announces no numbers.
    is_taking: bool,
    /// Whether the number in use and the one after it are in `processes`.
    is_announced: bool,
    /// How many heartbeats this process has tried to send. A number that was deleted and comes back has a later one.
    heartbeats: i64,
    /// When the last heartbeat was written.
    heard_at: Option<Instant>,
    /// The numbers of other processes.
    others: HashMap<i64, Seen>,
    task: Option<Background>,
}

/// A number of another process, as this process has seen it.
struct Seen {
    heartbeat: i64,
    /// Since when this is its last heartbeat.
    since: Instant,
    /// Whether there was another one before. Otherwise it may have been dead for a day.
    has_changed: bool,
}

impl Seen {
    fn lives(&self) -> bool {
        self.has_changed && self.since.elapsed() < FRESH
    }
}

/// A heartbeat.
struct Message {
    heartbeat: i64,
    numbers: Vec<i64>,
    given_up: Vec<i64>,
    /// Whether it has the number in use and the one after it.
    announces: bool,
    /// Whether it has a further one, since it is time for that.
    rotates: bool,
}

/// Numbers and their last heartbeats.
type Heartbeats = Vec<(i64, i64)>;

impl Liveness {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            connection: tokio::sync::Mutex::default(),
            state: Mutex::new(State::new()),
        }
    }

    /// Waits until it is known of each other process whether it lives. Only of those that are there now: new numbers come
    /// all the time.
    pub(super) async fn wait_for_the_silent(&self) -> Result<(), DatabaseError> {
        let mut unknown: Option<Vec<i64>> = None;
        loop {
            self.beat(&mut *self.connection.lock().await).await?;
            let now = self.state().unknown();
            let left = match unknown {
                None => now,
                Some(before) => before.into_iter().filter(|one| now.contains(one)).collect(),
            };
            if left.is_empty() {
                return Ok(());
            }
            unknown = Some(left);
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// This process takes nothing more for now. The numbers that no attempt holds are given up at once, and the others once
    /// their attempts have ended.
    pub(super) async fn leave(&self) {
        let leaving = async {
            let mut place = self.connection.lock().await;
            let gives_up = self.state().leave();
            if gives_up {
                self.beat(&mut place).await?;
            }
            Ok(())
        };
        let left = tokio::time::timeout(LEAVE_TIMEOUT, leaving).await;
        if let Err(error) = left.unwrap_or(Err(DatabaseError::TimedOut)) {
            tracing::debug!(%error, "webhook recovery could not say that it has stopped: it counts as dead in a few seconds");
        }
    }

    /// Sends a heartbeat, and looks at those of other processes. Returns how many numbers of dead processes it has deleted.
    async fn beat(&self, place: &mut Option<PgConnection>) -> Result<u64, DatabaseError> {
        let mut connection = match place.take() {
            Some(connection) => connection,
            None => {
                // A pool for this one connection has the hooks of the application's pool, such as one that sets a role.
                let options = self.pool.options().clone();
                let own = options
                    .min_connections(0)
                    .max_connections(1)
                    .connect_lazy_with((*self.pool.connect_options()).clone());
                // Boxed because it is a large future.
                let connecting = Box::pin(async { Ok(own.acquire().await?.detach()) });
                with_timeout(CONNECT_TIMEOUT, connecting).await?
            }
        };
        let message = self.state().message();
        let sent_at = Instant::now();
        // After an error, or if this is dropped, the connection is closed.
        let (connection, seen, dead) = with_timeout(TIMEOUT, async {
            sqlx::raw_sql(BEGIN).execute(&mut connection).await?;
            let seen = message.send(&mut connection).await?;
            let silent = self.state().silent(&seen, sent_at);
            let dead = expire(&silent, &mut connection).await?;
            sqlx::raw_sql("commit").execute(&mut connection).await?;
            Ok((connection, seen, dead))
        })
        .await?;
        *place = Some(connection);
        self.state().note_heard(message, seen);
        Ok(dead)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Message {
    /// Returns the heartbeats of other processes.
    async fn send(&self, connection: &mut PgConnection) -> sqlx::Result<Heartbeats> {
        let rows = sqlx::query(include_str!("kept/heartbeat.sql"))
            .bind(&self.numbers)
            .bind(&self.given_up)
            .bind(self.heartbeat)
            .fetch_all(connection)
            .await?;
        let read = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
        rows.iter().map(read).collect()
    }
}

/// Deletes the numbers of dead processes, and returns how many there were.
async fn expire(silent: &Heartbeats, connection: &mut PgConnection) -> sqlx::Result<u64> {
    if silent.is_empty() {
        return Ok(0);
    }
    let (numbers, heartbeats): (Vec<i64>, Vec<i64>) = silent.iter().copied().unzip();
    let expired = sqlx::query(include_str!("kept/expire.sql"))
        .bind(numbers)
        .bind(heartbeats);
    Ok(expired.execute(connection).await?.rows_affected())
}

impl State {
    fn new() -> Self {
        Self {
            in_use: Taker::new(),
            since: Instant::now(),
            announced: Taker::new(),
            next: None,
            draining: Vec::new(),
            is_taking: false,
            is_announced: false,
            heartbeats: 0,
            heard_at: None,
            others: HashMap::new(),
            task: None,
        }
    }

    fn message(&mut self) -> Message {
        let (held, given_up): (Vec<_>, Vec<_>) =
            self.draining.iter().partition(|taker| taker.is_held());
        let rotates = self.is_taking && self.since.elapsed() >= TERM;
        if rotates {
            self.next.get_or_insert_with(Taker::new);
        }
        let taking = [&self.in_use, &self.announced]
            .into_iter()
            .chain(&self.next);
        let numbers = held.into_iter().chain(taking.filter(|_| self.is_taking));
        let numbers = numbers.map(Taker::number).collect();
        let given_up = given_up.into_iter().map(Taker::number).collect();
        self.heartbeats += 1;
        Message {
            heartbeat: self.heartbeats,
            numbers,
            given_up,
            announces: self.is_taking,
            rotates,
        }
    }

    /// Those of other processes that are dead: the heartbeat has not changed for long, and this process was not silent
    /// itself meanwhile. `sent_at` is before they were read.
    fn silent(&self, seen: &Heartbeats, sent_at: Instant) -> Heartbeats {
        if self.is_deaf() {
            return Vec::new();
        }
        let is_silent = |(number, heartbeat): &&(i64, i64)| {
            self.others.get(number).is_some_and(|before| {
                before.heartbeat == *heartbeat
                    && sent_at.saturating_duration_since(before.since) >= SILENCE
            })
        };
        seen.iter().filter(is_silent).copied().collect()
    }

    /// The heartbeat is written, and these of other processes were read with it.
    fn note_heard(&mut self, message: Message, seen: Heartbeats) {
        let now = Instant::now();
        if self.is_deaf() {
            self.others.clear();
        }
        self.heard_at = Some(now);
        self.is_announced = message.announces;
        let before = std::mem::take(&mut self.others);
        self.others = seen
            .into_iter()
            .map(|(number, heartbeat)| {
                let before = before.get(&number);
                let same = before.filter(|before| before.heartbeat == heartbeat);
                let seen = Seen {
                    heartbeat,
                    since: same.map_or(now, |before| before.since),
                    has_changed: same.map_or(before.is_some(), |before| before.has_changed),
                };
                (number, seen)
            })
            .collect();
        self.draining
            .retain(|taker| !message.given_up.contains(&taker.number()));
        if message.rotates {
            self.rotate();
        }
    }

    /// The announced number is in use now, and the next one is announced.
    fn rotate(&mut self) {
        let next = self.next.take().unwrap_or_else(Taker::new);
        let announced = std::mem::replace(&mut self.announced, next);
        self.draining
            .push(std::mem::replace(&mut self.in_use, announced));
        self.since = Instant::now();
    }

    /// Takes nothing more. Returns whether there is a number to give up.
    fn leave(&mut self) -> bool {
        if std::mem::replace(&mut self.is_taking, false) {
            self.is_announced = false;
            self.draining.extend(self.next.take());
            self.rotate();
            self.rotate();
        }
        self.draining.iter().any(|taker| !taker.is_held())
    }

    /// The number in use, if another process has just seen it.
    fn fresh(&self) -> Option<Taker> {
        let is_fresh = self.heard_at.is_some_and(|at| at.elapsed() < FRESH);
        (self.is_announced && is_fresh).then(|| self.in_use.clone())
    }

    /// Whether this process has been silent itself, or has just begun.
    fn is_deaf(&self) -> bool {
        self.heard_at.is_none_or(|at| at.elapsed() >= DEAF_AFTER)
    }

    /// The numbers of other processes of which it is not known that they live.
    fn unknown(&self) -> Vec<i64> {
        let others = self.others.iter();
        others
            .filter(|(_, seen)| !seen.lives())
            .map(|(number, _)| *number)
            .collect()
    }
}

impl Shared {
    /// The number under which deliveries are taken now.
    pub(super) async fn taker(self: &Arc<Self>) -> Result<Taker, DatabaseError> {
        let liveness = &self.liveness;
        if let Some(taker) = liveness.state().fresh() {
            return Ok(taker);
        }
        // One heartbeat for all that wait for it.
        let place = tokio::time::timeout(TIMEOUT, liveness.connection.lock()).await;
        let mut place = place.map_err(|_| DatabaseError::TimedOut)?;
        loop {
            if let Some(taker) = liveness.state().fresh() {
                return Ok(taker);
            }
            self.stay_alive();
            liveness.beat(&mut place).await?;
        }
    }

    /// Announces numbers, and sends heartbeats in the background: for as long as there is a handle, and deliveries are taken
    /// or attempts are under way.
    pub(super) fn stay_alive(self: &Arc<Self>) {
        let mut state = self.liveness.state();
        state.is_taking = true;
        // The runtime of an earlier one may have shut down.
        if state.task.as_ref().is_none_or(Background::has_ended) {
            let shared = Arc::downgrade(self);
            state.task = Some(Background::spawn("heartbeat", move |_| run(shared.clone())));
        }
    }
}

async fn run(shared: Weak<Shared>) {
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let liveness = &shared.liveness;
        if liveness.pool.is_closed() {
            return;
        }
        let beaten = async {
            let mut place = liveness.connection.lock().await;
            let beaten = liveness.beat(&mut place).await;
            let mut state = liveness.state();
            let is_over = !state.is_taking && state.draining.is_empty();
            if is_over {
                // The next one to take a delivery starts another task.
                state.task = None;
                *place = None;
            }
            (beaten, is_over)
        };
        let (beaten, is_over) = beaten.await;
        let wait = match beaten {
            Ok(0) => INTERVAL,
            Ok(_) => {
                tracing::info!(
                    "a process of webhook recovery counts as dead, since it was silent for six seconds: its deliveries \
                     are taken over"
                );
                shared.news.notify_waiters();
                INTERVAL
            }
            Err(error) => {
                tracing::debug!(%error, "a heartbeat of webhook recovery failed");
                // Once it counts as dead, there is no hurry.
                match liveness.state().is_deaf() {
                    true => INTERVAL,
                    false => AGAIN,
                }
            }
        };
        if is_over {
            return;
        }
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

    /// The next heartbeat of this process, which reads that of another one. Returns whether it takes that one for dead.
    fn beat(state: &mut State, other: i64) -> bool {
        let message = state.message();
        let seen = vec![(1, other)];
        let silent = state.silent(&seen, Instant::now());
        state.note_heard(message, seen);
        !silent.is_empty()
    }

    fn taking() -> State {
        State {
            is_taking: true,
            ..State::new()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_silent_judges_the_others_after_it_was_heard_for_six_seconds() {
        let mut state = taking();
        for before in [Duration::ZERO, DEAF_AFTER] {
            tokio::time::advance(before).await;
            for (wait, expected) in [(0, false), (2, false), (2, false), (2, true), (2, true)] {
                tokio::time::advance(Duration::from_secs(wait)).await;
                assert_eq!(beat(&mut state, 7), expected);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_whose_heartbeat_changes_lives_whatever_it_is() {
        let mut state = taking();
        for other in [5, 6, -7, 6, i64::MAX, 0, 1, 2] {
            assert!(!beat(&mut state, other));
            tokio::time::advance(INTERVAL).await;
        }
        assert!(state.unknown().is_empty());
        for expected in [false, false, true] {
            assert_eq!(beat(&mut state, 2), expected);
            tokio::time::advance(INTERVAL).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_is_given_up_once_no_attempt_holds_it() {
        let mut state = taking();
        let held = state.in_use.clone();
        for _ in 0..3 {
            tokio::time::advance(TERM).await;
            let message = state.message();
            assert!(message.numbers.contains(&held.number()));
            assert!(!message.given_up.contains(&held.number()));
            state.note_heard(message, Vec::new());
        }
        let number = held.number();
        drop(held);
        let message = state.message();
        assert!(!message.numbers.contains(&number));
        assert!(message.given_up.contains(&number));
        state.note_heard(message, Vec::new());
        assert!(!state.message().given_up.contains(&number));
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_whose_announcement_is_not_answered_is_announced_again() {
        let mut state = taking();
        let message = state.message();
        state.note_heard(message, Vec::new());
        tokio::time::advance(TERM).await;
        let lost = state.message();
        let again = state.message();
        assert_eq!(lost.numbers.len(), 3);
        assert_eq!(again.numbers, lost.numbers);
        state.note_heard(again, Vec::new());
        assert_eq!(state.message().numbers.len(), 2);

        tokio::time::advance(TERM).await;
        let lost = state.message();
        let mut lost = [lost.numbers, lost.given_up].concat();
        assert!(state.leave());
        let mut given_up = state.message().given_up;
        lost.sort_unstable();
        given_up.sort_unstable();
        assert_eq!(given_up, lost);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_leaves_gives_up_what_no_attempt_holds() {
        let mut state = taking();
        let message = state.message();
        state.note_heard(message, Vec::new());
        assert!(state.fresh().is_some());
        let held = state.in_use.clone();
        let announced = state.announced.number();
        assert!(state.leave());
        assert!(state.fresh().is_none());
        state.is_taking = true;
        assert!(state.fresh().is_none(), "it was not announced");
        state.is_taking = false;
        let message = state.message();
        assert_eq!(message.numbers, [held.number()]);
        assert_eq!(message.given_up, [announced]);
        state.note_heard(message, Vec::new());
        assert!(!state.leave());
    }
}
