//! Whether a process lives. One that takes deliveries is heard of every two seconds, and what one has taken that is
//! silent for six is free for others. Nothing else tells whether an attempt is under way: neither how long ago
//! it began, nor a lock.
//!
//! A delivery is taken under a number. A process has a new one every ten seconds, and gives up an old one once no
//! attempt holds it. A process that lives can lose what it has taken: the task of the attempt was dropped, or nobody has
//! heard that the delivery was taken. It is free once the other attempts under its number have ended.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::shared::Shared;
use crate::pg_time::interval;
use crate::random::random;
use crate::transaction::{DatabaseError, with_timeout};

/// What a crash of Postgres loses of it is heard again before anybody counts as silent. Whoever is lost or frozen in
/// the midst of it holds its row for two seconds, and not for as long as Postgres believes in the connection.
const BEGIN: &str = "begin isolation level read committed not deferrable; \
    set local synchronous_commit = off; \
    set local lock_timeout = '1s'; \
    set local idle_in_transaction_session_timeout = '2s'";

/// How often a process is heard of.
const INTERVAL: Duration = Duration::from_secs(2);

/// The longest time that it takes to be heard.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How soon it is tried again. Several tries fit into the time that a process may be silent.
const AGAIN: Duration = Duration::from_millis(250);

/// Who is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(6);

/// Who was silent for longer than this itself cannot tell since when others are: Postgres may have been away.
/// Longer than from one time to the next.
const DEAF_AFTER: Duration = Duration::from_secs(4);

/// Who was heard of within this time can take a delivery, and be heard of again before it counts as gone.
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

    /// Whether an attempt holds it. Nobody gets it any more.
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The life of this process, as others hear of it.
pub(super) struct Liveness {
    pool: PgPool,
    /// Not one of the pool, which may all be in use for longer than it may be silent. Locked by whoever speaks.
    connection: tokio::sync::Mutex<Option<PgConnection>>,
    state: Mutex<State>,
}

struct State {
    current: Taker,
    /// Since when `current` is given to attempts.
    since: Instant,
    /// The one after it. Others have heard of it long before it is given to attempts: a statement of theirs that
    /// has begun earlier would take its deliveries for free.
    next: Taker,
    /// Those before it that attempts hold.
    earlier: Vec<Taker>,
    heard: Option<Heard>,
    task: Option<JoinHandle<()>>,
}

/// When this process was heard of.
#[derive(Clone, Copy)]
struct Heard {
    /// Since when without a longer silence.
    since: Instant,
    last: Instant,
}

/// What a process says.
struct Message {
    numbers: Vec<i64>,
    given_up: Vec<i64>,
    /// The number after the next one, if it is time for one.
    new: Option<Taker>,
    /// Whether this process can tell who is gone.
    can_tell: bool,
}

/// What a process hears.
#[derive(Default)]
struct Others {
    /// How many numbers were those of processes that are gone.
    gone: u64,
    /// Whether one is silent, and it is not known yet whether it is gone.
    are_silent: bool,
}

impl Liveness {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            connection: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                current: Taker::new(),
                since: Instant::now(),
                next: Taker::new(),
                earlier: Vec::new(),
                heard: None,
                task: None,
            }),
        }
    }

    /// Waits until it is known who is gone, if somebody is silent.
    pub(super) async fn wait_for_the_silent(&self) -> Result<(), DatabaseError> {
        while self
            .speak(&mut *self.connection.lock().await)
            .await?
            .are_silent
        {
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// Speaks, and hears who is gone.
    async fn speak(&self, place: &mut Option<PgConnection>) -> Result<Others, DatabaseError> {
        let message = self.state().message();
        let spoken = with_timeout(TIMEOUT, async {
            let mut connection = match place.take() {
                Some(connection) => connection,
                None => self.pool.acquire().await?.detach(),
            };
            let others = message.send(&mut connection).await?;
            Ok((connection, others))
        });
        // An error, or whoever drops this, closes the connection.
        let (connection, others) = spoken.await?;
        *place = Some(connection);
        self.state().note_heard(message);
        Ok(others)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Message {
    async fn send(&self, connection: &mut PgConnection) -> sqlx::Result<Others> {
        sqlx::raw_sql(BEGIN).execute(&mut *connection).await?;
        let mut others = Others {
            gone: 0,
            are_silent: sqlx::query_scalar(include_str!("kept/heartbeat.sql"))
                .bind(&self.numbers)
                .bind(&self.given_up)
                .bind(interval(SILENCE))
                .fetch_one(&mut *connection)
                .await?,
        };
        if others.are_silent && self.can_tell {
            let expired = sqlx::query(include_str!("kept/expire.sql")).bind(interval(SILENCE));
            others = Others {
                gone: expired.execute(&mut *connection).await?.rows_affected(),
                are_silent: false,
            };
        }
        sqlx::raw_sql("commit").execute(connection).await?;
        Ok(others)
    }
}

impl State {
    fn message(&self) -> Message {
        let (held, given_up): (Vec<_>, Vec<_>) =
            self.earlier.iter().partition(|taker| taker.is_held());
        let new = (self.since.elapsed() >= TERM).then(Taker::new);
        let numbers = held
            .into_iter()
            .chain([&self.current, &self.next])
            .chain(&new);
        Message {
            numbers: numbers.map(Taker::number).collect(),
            given_up: given_up.into_iter().map(Taker::number).collect(),
            can_tell: self.heard.is_some_and(|heard| {
                heard.last.elapsed() < DEAF_AFTER && heard.since.elapsed() >= SILENCE
            }),
            new,
        }
    }

    /// Others have heard the message.
    fn note_heard(&mut self, message: Message) {
        let now = Instant::now();
        let since = match self.heard {
            Some(heard) if heard.last.elapsed() < DEAF_AFTER => heard.since,
            _ => now,
        };
        self.heard = Some(Heard { since, last: now });
        self.earlier
            .retain(|taker| !message.given_up.contains(&taker.number()));
        if let Some(new) = message.new {
            let next = std::mem::replace(&mut self.next, new);
            self.earlier
                .push(std::mem::replace(&mut self.current, next));
            self.since = now;
        }
    }

    /// The current number, if this process was just heard of.
    fn fresh(&self) -> Option<Taker> {
        let heard = self.heard?;
        (heard.last.elapsed() < FRESH).then(|| self.current.clone())
    }
}

impl Shared {
    /// The number under which deliveries are taken now. Others have heard of it.
    pub(super) async fn taker(self: &Arc<Self>) -> Result<Taker, DatabaseError> {
        self.stay_alive();
        let liveness = &self.liveness;
        if let Some(taker) = liveness.state().fresh() {
            return Ok(taker);
        }
        // All of those who wait for the same, at once.
        let place = tokio::time::timeout(TIMEOUT, liveness.connection.lock()).await;
        let mut place = place.map_err(|_| DatabaseError::TimedOut)?;
        loop {
            if let Some(taker) = liveness.state().fresh() {
                return Ok(taker);
            }
            liveness.speak(&mut place).await?;
        }
    }

    /// Speaks in the background, for as long as somebody holds the handle.
    pub(super) fn stay_alive(self: &Arc<Self>) {
        let mut state = self.liveness.state();
        // The runtime of an earlier one may have shut down.
        if state.task.as_ref().is_none_or(JoinHandle::is_finished) {
            state.task = Some(tokio::spawn(run(Arc::downgrade(self))));
        }
    }
}

async fn run(shared: Weak<Shared>) {
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if shared.liveness.pool.is_closed() {
            return;
        }
        let spoken = async {
            let mut place = shared.liveness.connection.lock().await;
            shared.liveness.speak(&mut place).await
        };
        match spoken.await {
            Ok(others) if others.gone > 0 => {
                tracing::info!(
                    "a process of webhook recovery has stopped or died: others take over its deliveries"
                );
                shared.news.notify_waiters();
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "other processes could not hear of this one");
                drop(shared);
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        }
        drop(shared);
        tokio::time::sleep(INTERVAL).await;
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

    fn state() -> State {
        State {
            current: Taker::new(),
            since: Instant::now(),
            next: Taker::new(),
            earlier: Vec::new(),
            heard: None,
            task: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_silent_cannot_tell_at_once_who_is_gone() {
        let mut state = state();
        for before in [Duration::ZERO, DEAF_AFTER] {
            tokio::time::advance(before).await;
            for (wait, expected) in [(0, false), (2, false), (2, false), (2, true), (2, true)] {
                tokio::time::advance(Duration::from_secs(wait)).await;
                let message = state.message();
                assert_eq!(message.can_tell, expected);
                state.note_heard(message);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_is_given_up_once_no_attempt_holds_it() {
        let mut state = state();
        let held = state.current.clone();
        for _ in 0..3 {
            tokio::time::advance(TERM).await;
            let message = state.message();
            assert!(message.numbers.contains(&held.number()));
            assert!(!message.given_up.contains(&held.number()));
            state.note_heard(message);
        }
        let number = held.number();
        drop(held);
        let message = state.message();
        assert!(!message.numbers.contains(&number));
        assert!(message.given_up.contains(&number));
        state.note_heard(message);
        assert!(!state.message().given_up.contains(&number));
    }
}
