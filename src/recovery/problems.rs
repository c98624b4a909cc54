//! Problems of endpoints. What is one, such as `failing`, is decided by the function `endpoint_problems` in Postgres
//! (`migrations/functions.sql`). A look notes which there are, for all processes, and logs what has changed. What has
//! changed is a row until a process has told it to its hook.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::time::Instant;

use super::hook::{self, TELLING, Telling};
use crate::pg_time::{from_unix_time, interval};
use crate::stop_signal::Stop;
use crate::transaction::{DatabaseError, Store, Turn};

/// How long a look is one for all processes, each of which looks every half a minute.
const TURN: Duration = Duration::from_secs(25);

/// Called with each change.
pub(super) type OnChange = Arc<dyn Fn(&EndpointChange) + Send + Sync>;

/// What is wrong with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Deliveries have failed, and wait for another attempt, for an operator or for their provider.
    Failing,
    /// Many failed in a row, so that one delivery is tried at a time: the [breaker](crate::Keep::breaker) is open.
    Probing,
    /// Deliveries that were run again have reached no layer of the endpoint, or another version of this crate has kept them.
    Unreached,
    /// Deliveries are due, and no process with a [`Recovery`](crate::Recovery) of the endpoint was heard of for two minutes.
    Unserved,
    /// No authentic request has come for longer than [`expect_every`](crate::IdempotentWebhook::expect_every) says.
    Silent,
    /// [`Reconcile`](crate::Reconcile) has failed, has left something out, or is late by more than an hour.
    NotReconciled,
    /// Events of a type are ignored that the endpoint never had before, and that no name of its table matches
    /// ([which types are new](crate::documentation::operating#event-types)).
    NewEventType,
    /// Events of a type that has a handler do not come any more
    /// ([when a type has stopped](crate::documentation::operating#event-types)).
    EventTypeStopped,
    /// The provider's subscription of the endpoint is not as [`Subscriptions`](crate::subscriptions::Subscriptions) expects
    /// it: events do not come, come twice, or are of another version.
    SubscriptionDiffers,
    /// For a day, the provider could not be asked for its subscription of the endpoint: a key is wrong, or the API fails.
    NotCompared,
    /// Over the last day, payloads had another version than the provider is
    /// [expected](crate::Provider::expect_version) to send, or another [mode](crate::Provider::expect_livemode). Where the signature does not cover the version, an attacker
    /// with a captured request can cause it.
    OtherVersion,
    /// A background task of a process has stopped, although the process lives: it has not finished what it does in the time
    /// that this may take. The subject is its name, such as `recovery`.
    Stalled,
}

impl Problem {
    const ALL: [Self; 12] = [
        Self::Failing,
        Self::Probing,
        Self::Unreached,
        Self::Unserved,
        Self::Silent,
        Self::NotReconciled,
        Self::NewEventType,
        Self::EventTypeStopped,
        Self::SubscriptionDiffers,
        Self::NotCompared,
        Self::OtherVersion,
        Self::Stalled,
    ];

    /// The name in the log, such as `not reconciled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Probing => "probing",
            Self::Unreached => "unreached",
            Self::Unserved => "unserved",
            Self::Silent => "silent",
            Self::NotReconciled => "not reconciled",
            Self::NewEventType => "new event type",
            Self::EventTypeStopped => "event type stopped",
            Self::SubscriptionDiffers => "subscription differs",
            Self::NotCompared => "not compared",
            Self::OtherVersion => "other version",
            Self::Stalled => "stalled",
        }
    }

    /// What the log says of it.
    fn meaning(self) -> &'static str {
        match self {
            Self::Failing => "deliveries have failed and wait",
            Self::Probing => {
                "many deliveries have failed in a row, so one is tried at a time, and the rest wait without \
                 using up attempts"
            }
            Self::Unreached => {
                "deliveries that were run again have reached no layer of the endpoint, or another version of \
                 idempotent-webhook has kept them"
            }
            Self::Unserved => {
                "webhook deliveries are due, but no process runs them: deploy the layer of this endpoint \
                 again, or discard them"
            }
            Self::Silent => "no authentic request has come for longer than is expected",
            Self::NotReconciled => {
                "the provider's list of events was not read as a whole, or is late"
            }
            Self::NewEventType => {
                "events of a type that this endpoint never had before are ignored: was one renamed? Give it a \
                 handler, or name it in `Events::ignore`"
            }
            Self::EventTypeStopped => {
                "events of a type that has a handler do not come any more: was it renamed, or is the \
                 subscription at the provider another one?"
            }
            Self::SubscriptionDiffers => {
                "the provider's subscription is not as the layer expects it: the log and the table \
                 `subscriptions` say what differs"
            }
            Self::NotCompared => {
                "the provider could not be asked for its subscription for a day, as with a wrong key: the log and \
                 the table `subscriptions` say why"
            }
            Self::OtherVersion => "payloads have another version or mode than is expected",
            Self::Stalled => {
                "a background task has stopped, although its process lives: the log of that process has its name at \
                 ERROR. Restart it"
            }
        }
    }

    /// The names of all. A later version may know more.
    fn names() -> [&'static str; 12] {
        Self::ALL.map(Self::as_str)
    }

    fn read(text: &str) -> sqlx::Result<Self> {
        let problem = Self::ALL.into_iter().find(|known| known.as_str() == text);
        problem.ok_or_else(|| {
            let unknown = format!("an endpoint has the unknown problem {text:?}");
            sqlx::Error::Decode(unknown.into())
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A problem of an endpoint has begun, or is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointChange {
    /// The endpoint.
    pub endpoint: String,
    /// What is wrong, or was.
    pub problem: Problem,
    /// What the problem is about, if that is not the endpoint: the event type, or the task that has stopped. `*` stands for those that are not told by
    /// name, and ` (unverified)` is at the end of one that a sender may have chosen.
    pub subject: Option<String>,
    /// When it was seen first.
    pub since: SystemTime,
    /// Whether it is over.
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

/// How a process looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Also if another process has looked a moment ago.
    pub(super) is_forced: bool,
    /// Whether it judges which endpoints no process recovers.
    pub(super) judges_absence: bool,
}

/// Looks at all endpoints for all processes, unless another one has done so a moment ago. Notes and logs what has changed.
pub(super) async fn look(store: &Store, look: Look) -> Result<(), DatabaseError> {
    let looked = tokio::time::timeout(store.timeout, look_in_time(store, look));
    looked.await.unwrap_or(Err(DatabaseError::TimedOut))
}

async fn look_in_time(store: &Store, look: Look) -> Result<(), DatabaseError> {
    let mut tx = store.begin_short().await?;
    let turn = Turn::of("problems", TURN);
    if !turn.take_once(look.is_forced, &mut tx).await? {
        tx.end();
        return Ok(());
    }
    let changes = sqlx::query(include_str!("kept/problems.sql"))
        .bind(look.judges_absence)
        .bind(Problem::names())
        .fetch_all(&mut *tx)
        .await?;
    // Before the commit, whose answer may be lost.
    for row in changes {
        EndpointChange::read(&row)?.log();
    }
    Ok(tx.commit().await?)
}

/// Tells the hook what no hook was told, one after the other. A change is taken just before it is told, so that a process
/// which was frozen in between does not tell what was true before.
pub(super) async fn tell_changes(
    store: &Store,
    on_change: &OnChange,
    stop: &Stop,
) -> Result<(), DatabaseError> {
    let telling = Telling::begin(stop);
    while !telling.is_over() {
        let asked_at = Instant::now();
        let next = || {
            sqlx::query(include_str!("kept/tell_change.sql"))
                .bind(Problem::names())
                .bind(interval(TELLING))
        };
        let rows = store.run(next).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let change = EndpointChange::read(row)?;
        // Another process may tell it by now.
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
