//! Looks for problems of endpoints, and reports their changes to the log and to the hook. `activity/problem.rs` and
//! `migrations/functions.sql` define what a problem is, and its name. A change stays a row in the table `problems`
//! until a process has reported it to its hook.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::time::Instant;

use super::hook::{self, TELLING, Telling};
use crate::activity::problem::Problem;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::pg_time::{from_unix_time, interval};
use crate::transaction::{DatabaseError, Store, Turn};

/// For this long after a look, no process needs to look again. Each process tries to look every half a minute.
const TURN: Duration = Duration::from_secs(25);

/// Called with each change of a problem.
pub(super) type OnChange = Arc<dyn Fn(&EndpointChange) + Send + Sync>;

/// The start or the end of a problem of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointChange {
    /// The endpoint.
    pub endpoint: String,
    /// What is or was wrong.
    pub problem: Problem,
    /// What the problem is about, if that is not the endpoint: the event type, or the task that has stopped. `*`
    /// stands for event types that are not reported by name. A type that a sender may have chosen ends with
    /// ` (unverified)`.
    pub subject: Option<String>,
    /// When the problem was first seen.
    pub since: SystemTime,
    /// Whether the problem is over.
    pub is_over: bool,
}

impl EndpointChange {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            endpoint: row.try_get("endpoint")?,
            problem: Problem::read(row.try_get("problem")?)?,
            subject: Some(row.try_get("subject")?).filter(|subject: &String| !subject.is_empty()),
            since: from_unix_time(row.try_get("since")?),
            is_over: row.try_get("is_over")?,
        })
    }

    fn log(&self) {
        let (endpoint, problem) = (&*self.endpoint, self.problem.as_str());
        let subject = self.subject.as_deref();
        if self.is_over {
            let seconds = self.since.elapsed().unwrap_or_default().as_secs();
            tracing::info!(endpoint, problem, subject, seconds, "webhook problem over");
        } else {
            let meaning = self.problem.meaning();
            tracing::warn!(endpoint, problem, subject, meaning, "webhook problem");
        }
    }
}

/// How a process looks for problems.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Whether the process looks even if another process has just looked.
    pub(super) is_forced: bool,
    /// Whether the process may report that no process recovers an endpoint.
    pub(super) judges_absence: bool,
}

/// Looks for problems of all endpoints, on behalf of all processes, unless another process has just done so. Notes and
/// logs what has changed.
pub(super) async fn look(store: &Store, look: Look) -> Result<(), DatabaseError> {
    let looked = tokio::time::timeout(store.timeout, look_in_time(store, look));
    looked.await.unwrap_or(Err(DatabaseError::TimedOut))
}

async fn look_in_time(store: &Store, look: Look) -> Result<(), DatabaseError> {
    let mut tx = store.begin_short().await?;
    let turn = Turn::of("problems", TURN, store.environment());
    if !turn.take_once(look.is_forced, &mut tx).await? {
        tx.end();
        return Ok(());
    }
    let changes = sqlx::query(include_str!("kept/problems.sql"))
        .bind(look.judges_absence)
        .bind(Problem::names())
        .fetch_all(&mut *tx)
        .await?;
    // Logged before the commit, whose answer may be lost.
    for row in changes {
        EndpointChange::read(&row)?.log();
    }
    Ok(tx.commit().await?)
}

/// Reports to the hook each change that was not reported to any hook, one after the other. A change is read and
/// reserved just before it is reported, so that a process which was frozen in between does not report an outdated
/// state.
pub(super) async fn tell_changes(
    store: &Store,
    on_change: &OnChange,
    stop: &Stop,
) -> Result<(), DatabaseError> {
    let telling = Telling::begin(stop);
    let environment = store.environment().name();
    while !telling.is_over() {
        let asked_at = Instant::now();
        let next = || {
            sqlx::query(include_str!("kept/tell_change.sql"))
                .bind(Problem::names())
                .bind(interval(TELLING))
                .bind(environment.as_deref())
        };
        let rows = store.run(next).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let change = EndpointChange::read(row)?;
        // Another process may be reporting the change by now.
        if asked_at.elapsed() > TELLING / 2 {
            continue;
        }
        let (hook, told) = (on_change.clone(), change.clone());
        if !hook::call("on_change", move || hook(&told)).await {
            return Ok(());
        }
        let calls: i64 = row.try_get("tellings")?;
        let told = || {
            sqlx::query(include_str!("kept/told_change.sql"))
                .bind(&change.endpoint)
                .bind(change.problem.as_str())
                .bind(!change.is_over)
                .bind(calls)
                .bind(change.subject.as_deref().unwrap_or_default())
        };
        store.run(told).await?;
    }
    Ok(())
}
