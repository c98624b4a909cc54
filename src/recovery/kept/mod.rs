//! The deliveries that are kept, and all that happens to them.
//!
//! | from | event | to | statement |
//! |---|---|---|---|
//! | | a request of the provider is kept before its handler runs | due, taken | `accept.sql` |
//! | | reconciliation finds that it never came | due | `accept.sql` |
//! | | an attempt of the provider failed | due, dead or recorded | `keep_failed.sql` |
//! | due, dead, recorded, processed | the provider sends it again, and it is accepted first | due | `note_resent.sql`, `resend.sql` |
//! | due | its time has come | due, taken | `take.sql` |
//! | due, taken | the process of the attempt is gone | due | `expire.sql` |
//! | any | an attempt claims the delivery, in a transaction that commits | none or processed | `end_with_claim.sql` |
//! | due, taken | the attempt failed | due or dead | `fail.sql` |
//! | due, taken | the attempt could not begin | due | `give_back.sql` |
//! | due, dead, recorded | it was processed while it was kept | none or processed | `resolve.sql`, retention |
//! | due, taken | its handler discards it, or its body was processed under another id | none | `drop.sql` |
//! | due, dead, recorded | the same at a request of the provider | none | `drop.sql` |
//! | due, dead | an operator retries it | due | `retry.sql` |
//! | due, dead, recorded | an operator discards it | none | `discard.sql` |
//! | processed | an operator has it processed again | due | `reprocess.sql` |
//! | due, dead, recorded | its content is erased: by an operator, or since it has been dead for some time | recorded | `erase.sql` |
//! | processed | its content is erased | none | `erase.sql` |
//! | dead, recorded, processed | its time is over | none | retention |
//!
//! *Taken* is a row whose number is that of a process that lives (`liveness.rs`). What an attempt writes has an
//! effect only if no other attempt has taken the row since.
//!
//! The tables are in `migrations/0002_kept.sql`. Each statement is a file that can be run in psql, but for those with a
//! filter of an operator, in `operator`.
//!
//! Locks are taken in one order: that of the claim, the row of the delivery, the row of its endpoint.

mod state;

use std::collections::HashSet;
use std::time::Duration;

use http::StatusCode;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

pub use state::KeptState;

use super::dead::state_after_failure;
use super::failed_attempt::FailedAttempt;
use super::hook::TELLING;
use super::kept_request::{FORMAT, KeptRequest};
use super::liveness::Taker;
use super::served_endpoints::Served;
use super::taken::Take;
use crate::delivery::Delivery;
use crate::pg_time::{interval, unix_time};
use crate::transaction::{DatabaseError, RowKeys, Store, keyed};

/// Waits for those who set deliveries aside, and keeps others from it to the end of the transaction: their inserts take
/// the lock that this one excludes. Without this: a list of the provider has looked for the last time, A is processed and
/// forgotten, the list commits, and A runs once more.
const HOLD_DISCARDED: &str = "lock table idempotent_webhook.discarded in share mode";

/// Whose attempt it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptBy {
    Provider,
    Recovery,
}

impl AttemptBy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Recovery => "recovery",
        }
    }
}

/// How a failed attempt is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptAs {
    pub(crate) state: KeptState,
    /// Whether this attempt was the one after which it is dead.
    pub(crate) died: bool,
    /// How often it has been taken.
    pub(crate) takes: i64,
}

impl KeptAs {
    fn read(rows: &[PgRow]) -> Result<Option<Self>, DatabaseError> {
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(Self {
            state: KeptState::read(row.try_get("state")?)?,
            died: row.try_get("died")?,
            takes: row.try_get("takes")?,
        }))
    }
}

/// What has become of a delivery during an attempt at it.
pub(crate) struct Became {
    pub(crate) is_processed: bool,
    pub(crate) is_kept: bool,
    pub(crate) is_discarded: bool,
}

/// A request to keep before its handler runs.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance {
    pub(crate) delivery: Delivery,
    pub(crate) request: KeptRequest,
    /// The number that takes it, if its first attempt begins now, in this process.
    pub(crate) taker: Option<Taker>,
}

/// The result of keeping a request before its handler runs.
#[derive(Clone, Debug)]
pub(crate) enum Accepted {
    /// It is kept now. With a take, its attempt begins now.
    New(Option<Take>),
    /// It was kept before.
    Known,
    /// It was processed before.
    Processed,
}

impl Accepted {
    fn read(row: &PgRow, taker: &Option<Taker>) -> sqlx::Result<Self> {
        if row.try_get("processed")? {
            return Ok(Self::Processed);
        }
        let Some(number) = row.try_get::<Option<i64>, _>("takes")? else {
            return Ok(Self::Known);
        };
        let is_taken: bool = row.try_get("is_taken")?;
        let taker = taker.as_ref().filter(|_| is_taken);
        Ok(Self::New(taker.map(|taker| Take {
            number,
            retries: 0,
            _taker: taker.clone(),
        })))
    }
}

/// Keeps requests of one endpoint, with one statement. Of two with the same key, the first one is new.
pub(super) async fn accept(
    connection: &mut PgConnection,
    group: &[&Acceptance],
    waits_while_paused: bool,
) -> sqlx::Result<Vec<Accepted>> {
    let Some(first) = group.first() else {
        return Ok(Vec::new());
    };
    let (endpoint, is_reconciled) = (first.delivery.endpoint(), first.delivery.is_reconciled());
    let rows = sqlx::query(include_str!("accept.sql"))
        .bind(endpoint)
        .bind(column(group, |one| one.delivery.key_tenant()))
        .bind(column(group, |one| one.delivery.id().as_str()))
        .bind(column(group, |one| one.delivery.tenant()))
        .bind(column(group, |one| one.delivery.event_type()))
        .bind(column(group, |one| {
            unix_time(one.delivery.first_received_at())
        }))
        .bind(column(group, |one| one.taker.as_ref().map(Taker::number)))
        .bind(column(group, |one| one.request.body_bytes()))
        .bind(column(group, |one| one.request.method.as_str()))
        .bind(column(group, |one| &*one.request.uri))
        .bind(column(group, |one| &*one.request.headers))
        .bind(column(group, |one| &*one.request.body))
        .bind(column(group, |one| one.delivery.signed_at().map(unix_time)))
        .bind(waits_while_paused)
        .bind(is_reconciled)
        .bind(first.request.archived_for.map(interval))
        .fetch_all(&mut *connection)
        .await?;
    let mut seen = HashSet::new();
    let mut accepted = Vec::with_capacity(group.len());
    for (one, row) in group.iter().zip(&rows) {
        let is_first = seen.insert((one.delivery.key_tenant(), one.delivery.id()));
        accepted.push(match Accepted::read(row, &one.taker)? {
            Accepted::New(_) if !is_first => Accepted::Known,
            accepted => accepted,
        });
    }
    if is_reconciled {
        let new: RowKeys = group
            .iter()
            .zip(&accepted)
            .filter(|(_, accepted)| matches!(accepted, Accepted::New(_)))
            .map(|(one, _)| key(&one.delivery))
            .collect();
        // What is forgotten from here on waits for this transaction, and deletes what it has kept.
        sqlx::query(HOLD_DISCARDED)
            .execute(&mut *connection)
            .await?;
        let leave = new.bind(sqlx::query(include_str!("leave_known.sql")), endpoint);
        let known = RowKeys::read(&leave.fetch_all(connection).await?)?;
        for (one, accepted) in group.iter().zip(&mut accepted) {
            if known.contains(&key(&one.delivery)) {
                *accepted = Accepted::Known;
            }
        }
    }
    Ok(accepted)
}

fn key(delivery: &Delivery) -> (String, String) {
    (
        delivery.key_tenant().to_owned(),
        delivery.id().as_str().to_owned(),
    )
}

fn drop_statement<'q>(
    delivery: &'q Delivery,
    take: Option<&Take>,
) -> Query<'q, Postgres, PgArguments> {
    keyed(include_str!("drop.sql"), delivery).bind(take.map(|take| take.number))
}

fn column<'a, T>(group: &[&'a Acceptance], value: impl Fn(&'a Acceptance) -> T) -> Vec<T> {
    group.iter().map(|one| value(one)).collect()
}

impl Store {
    /// Makes a delivery due that is kept already and was sent again. Returns whether it was processed.
    pub(super) async fn resend(&self, acceptance: &Acceptance) -> Result<bool, DatabaseError> {
        let (delivery, request) = (&acceptance.delivery, &acceptance.request);
        let statement = || {
            keyed(include_str!("resend.sql"), delivery)
                .bind(delivery.tenant())
                .bind(delivery.event_type())
                .bind(unix_time(delivery.first_received_at()))
                .bind(request.body_bytes())
                .bind(request.method.as_str())
                .bind(&*request.uri)
                .bind(&*request.headers)
                .bind(&*request.body)
                .bind(delivery.signed_at().map(unix_time))
                .bind(request.archived_for.map(interval))
        };
        let note = || keyed(include_str!("note_resent.sql"), delivery);
        // In a transaction of its own: the other one may wait for a row, and an operation would wait for both.
        self.run(note).await?;
        let rows = self.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get("processed")?)
    }

    /// Keeps or records a failed attempt of the provider. `None` if it was committed meanwhile.
    ///
    /// Another process may be running the delivery now. Its commit would not end what is kept at the same
    /// moment. So this waits for that attempt, for at most half of the timeout. `tells` is whether a hook is told of
    /// dead deliveries.
    pub(crate) async fn keep_failed(
        &self,
        failed: &FailedAttempt,
        delivery: &Delivery,
        request: Option<&KeptRequest>,
        delay: Option<Duration>,
        tells: bool,
    ) -> Result<Option<KeptAs>, DatabaseError> {
        let state = match request {
            None => KeptState::Recorded,
            Some(_) => state_after_failure(delay),
        };
        let statement = || {
            keyed(include_str!("keep_failed.sql"), delivery)
                .bind(delivery.tenant())
                .bind(delivery.event_type())
                .bind(state.as_str())
                .bind(unix_time(delivery.first_received_at()))
                .bind(delay.filter(|_| state == KeptState::Due).map(interval))
                .bind(failed.status())
                .bind(failed.reason())
                .bind(request.map(|request| request.method.as_str()))
                .bind(request.map(|request| &*request.uri))
                .bind(request.map(|request| &*request.headers))
                .bind(request.map(|request| &*request.body))
                .bind(delivery.signed_at().map(unix_time))
                .bind(failed.says_what_is_next())
                .bind(
                    request
                        .and_then(|request| request.archived_for)
                        .map(interval),
                )
                .bind(tells.then(|| interval(TELLING)))
        };
        let wait = (self.timeout / 2).as_millis().max(1).to_string();
        let lock = || keyed(include_str!("lock.sql"), delivery).bind(&*wait);
        let rows = match self.run_all(|| [lock(), statement()]).await {
            Err(error) if error.is_wait_over() || matches!(error, DatabaseError::TimedOut) => {
                self.run(statement).await?
            }
            rows => rows?,
        };
        KeptAs::read(&rows)
    }

    /// Records that an attempt at a kept delivery has failed. `None` if another attempt has taken it since.
    /// `not_begun` is how many attempts were counted that did not begin.
    pub(crate) async fn fail(
        &self,
        failed: &FailedAttempt,
        delivery: &Delivery,
        take: &Take,
        not_begun: i32,
        served: &Served,
        by: AttemptBy,
    ) -> Result<Option<KeptAs>, DatabaseError> {
        let retries = take.retries.saturating_sub(not_begun.unsigned_abs());
        let delay = failed.delay(&served.schedule, retries);
        let state = state_after_failure(delay);
        let tells = served.dead_report().hook.is_some();
        let statement = || {
            keyed(include_str!("fail.sql"), delivery)
                .bind(failed.status())
                .bind(failed.reason())
                .bind(state.as_str())
                .bind(delay.map(interval))
                .bind(not_begun)
                .bind(take.number)
                .bind(failed.opens_breaker().then_some(served.breaker.failures))
                .bind(interval(served.breaker.probe_interval))
                .bind(by.as_str())
                .bind(tells.then(|| interval(TELLING)))
        };
        KeptAs::read(&self.run(statement).await?)
    }

    /// Takes back an attempt that was counted and did not begin. The next one is due after `wait`. `unreached` is
    /// what was answered to one that reached no layer, whose wait doubles each time, up to an hour. Returns whether the row was still that of the attempt.
    pub(crate) async fn give_back(
        &self,
        delivery: &Delivery,
        take: &Take,
        wait: Duration,
        unreached: Option<Option<StatusCode>>,
    ) -> Result<bool, DatabaseError> {
        let status = unreached.flatten().map(|status| status.as_u16());
        let statement = || {
            keyed(include_str!("give_back.sql"), delivery)
                .bind(take.number)
                .bind(interval(wait))
                .bind(i32::from(take.retries > 0))
                .bind(unreached.is_some())
                .bind(status.map(u16::cast_signed))
        };
        Ok(!self.run(statement).await?.is_empty())
    }

    /// What has become of a delivery whose row is not that of the attempt any more, which has begun so long ago.
    pub(crate) async fn what_became(
        &self,
        delivery: &Delivery,
        began: Duration,
    ) -> Result<Became, DatabaseError> {
        let statement = || keyed(include_str!("what_became.sql"), delivery).bind(interval(began));
        let rows = self.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(Became {
            is_processed: row.try_get("is_processed")?,
            is_kept: row.try_get("is_kept")?,
            is_discarded: row.try_get("is_discarded")?,
        })
    }

    /// Ends what is kept of a delivery that was processed by another attempt.
    pub(crate) async fn resolve(&self, delivery: &Delivery) -> Result<(), DatabaseError> {
        let statement = || keyed(include_str!("resolve.sql"), delivery);
        self.run(statement).await.map(drop)
    }

    /// Drops a delivery that its handler has discarded: what this attempt has taken, if it has taken it.
    pub(crate) async fn drop_kept(
        &self,
        delivery: &Delivery,
        take: Option<&Take>,
    ) -> Result<(), DatabaseError> {
        let tenant = [delivery.key_tenant()];
        let id = [delivery.id().as_str()];
        let set_aside = || {
            sqlx::query(include_str!("set_aside.sql"))
                .bind(delivery.endpoint())
                .bind(tenant)
                .bind(id)
        };
        self.run_all(|| [drop_statement(delivery, take), set_aside()])
            .await
            .map(drop)
    }

    /// Drops a delivery whose body was processed under another id: what this attempt has taken, if it has taken it.
    pub(crate) async fn drop_replay(
        &self,
        delivery: &Delivery,
        take: Option<&Take>,
    ) -> Result<(), DatabaseError> {
        let set_aside = || keyed(include_str!("set_aside_replay.sql"), delivery);
        self.run_all(|| [drop_statement(delivery, take), set_aside()])
            .await
            .map(drop)
    }

    /// Whether a delivery was processed, or has a row.
    pub(super) async fn is_known(&self, delivery: &Delivery) -> Result<bool, DatabaseError> {
        let rows = self
            .run(|| keyed(include_str!("is_known.sql"), delivery))
            .await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get(0)?)
    }

    pub(super) async fn is_full(
        &self,
        endpoint: &str,
        deliveries: i64,
        bytes: i64,
    ) -> Result<bool, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("is_full.sql"))
                .bind(endpoint)
                .bind(deliveries)
                .bind(bytes)
        };
        let rows = self.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get(0)?)
    }

    /// Takes deliveries of an endpoint that are due.
    pub(super) async fn take(
        &self,
        endpoint: &str,
        wanted: Wanted,
        taker: &Taker,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("take.sql"))
                .bind(endpoint)
                .bind(i64::try_from(wanted.limit).unwrap_or(i64::MAX))
                .bind(FORMAT)
                .bind(wanted.due_at)
                .bind(taker.number())
                .bind(wanted.is_probe)
        };
        self.run(statement).await
    }

    /// What was kept of the requests of these deliveries.
    pub(super) async fn requests(
        &self,
        endpoint: &str,
        keys: &RowKeys,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        let statement = || keys.bind(sqlx::query(include_str!("requests.sql")), endpoint);
        self.run(statement).await
    }

    /// The next delivery of each of these endpoints.
    pub(super) async fn next(&self, endpoints: &[&str]) -> Result<Vec<Next>, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("next.sql"))
                .bind(endpoints)
                .bind(FORMAT)
        };
        let rows = self.run(statement).await?;
        Ok(rows.iter().map(Next::read).collect::<sqlx::Result<_>>()?)
    }

    /// The time of the database, in Unix seconds.
    pub(super) async fn time(&self) -> Result<f64, DatabaseError> {
        let statement = || sqlx::query("select extract(epoch from now())::float8");
        let rows = self.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get(0)?)
    }

    /// This process recovers these endpoints.
    pub(super) async fn serve(&self, endpoints: &[&str]) -> Result<(), DatabaseError> {
        let statement = || sqlx::query(include_str!("serve.sql")).bind(endpoints);
        self.run(statement).await.map(drop)
    }

    /// How many deliveries of these endpoints have failed and wait: endpoint, state and number, which is at
    /// most `limit`.
    pub(super) async fn failing(
        &self,
        endpoints: &[&str],
        limit: i64,
    ) -> Result<Vec<(String, String, i64)>, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("failing.sql"))
                .bind(endpoints)
                .bind(limit)
        };
        let read = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let rows = self.run(statement).await?;
        Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
    }

    /// Whether deliveries of an endpoint are due, and no process recovers it.
    pub(super) async fn is_unserved(&self, endpoint: &str) -> Result<bool, DatabaseError> {
        let statement = || {
            sqlx::query(
            "select from idempotent_webhook.endpoint_problems(array[$1], $2) where problem = 'unserved'",
        )
        .bind(endpoint)
        .bind(FORMAT)
        };
        Ok(!self.run(statement).await?.is_empty())
    }

    /// The endpoints of which the last look has found that no process runs what is due, and how many deliveries these
    /// are, which is at most `limit`.
    pub(super) async fn unserved(&self, limit: i64) -> Result<Vec<(String, i64)>, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("unserved.sql"))
                .bind(limit)
                .bind(FORMAT)
        };
        let read = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
        let rows = self.run(statement).await?;
        Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
    }
}

/// What an attempt of recovery takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// At most so many, and at most eight.
    pub(super) limit: usize,
    /// What was due then, in Unix seconds, instead of now.
    pub(super) due_at: Option<f64>,
    /// Although the breaker is open.
    pub(super) is_probe: bool,
}

/// The next delivery of an endpoint, and what holds it back.
pub(super) struct Next {
    pub(super) endpoint: String,
    /// Until a delivery can be taken. `None` if there is none, or the endpoint is paused.
    pub(super) wait: Option<Duration>,
    /// For how long it has been due.
    pub(super) overdue: Duration,
    /// Whether the breaker is open.
    pub(super) is_open: bool,
    /// Whether attempts have failed since the last success.
    pub(super) has_failures: bool,
}

impl Next {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        let seconds =
            |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        Ok(Self {
            endpoint: row.try_get("endpoint")?,
            wait: row.try_get::<Option<f64>, _>("wait")?.map(seconds),
            overdue: seconds(row.try_get::<Option<f64>, _>("overdue")?.unwrap_or(0.0)),
            is_open: row.try_get("is_open")?,
            has_failures: row.try_get("has_failures")?,
        })
    }
}
