//! The statements that record the result of an attempt in a kept row. `layer/request/record_result.rs` decides
//! which one runs.

use std::time::Duration;

use http::StatusCode;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{KeptState, set_aside};
use crate::provider::delivery::Delivery;
use crate::recovery::dead::state_after_failure;
use crate::recovery::failed_attempt::FailedAttempt;
use crate::recovery::hook::TELLING;
use crate::recovery::kept_request::KeptRequest;
use crate::recovery::served_endpoints::Served;
use crate::recovery::taken::Take;
use crate::transaction::pg_time::{interval, unix_time};
use crate::transaction::{DatabaseError, RowKeys, Store, keyed};

/// Who made the attempt.
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

/// Why an unprocessed delivery is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DroppedAs {
    /// The handler has discarded it.
    Discarded,
    /// Its body was processed under another id.
    Replay,
}

/// How a failed attempt is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptAs {
    pub(crate) state: KeptState,
    /// Whether it is dead after this attempt.
    pub(crate) died: bool,
    /// The take number of its row, which each take increases.
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

/// Why an attempt that was counted is subtracted again.
pub(crate) enum GivenBack {
    /// The layer has not called the handler, or recovery was asked to stop.
    NotBegun,
    /// The attempt has reached no layer. Holds the status of the router's answer, if there was an answer.
    Unreached(Option<StatusCode>),
}

/// What has happened to a delivery during an attempt at it.
pub(crate) struct Became {
    pub(crate) is_processed: bool,
    pub(crate) is_kept: bool,
    pub(crate) is_discarded: bool,
}

impl Store {
    /// Keeps or records a failed provider attempt. `None` if another attempt has committed the delivery meanwhile.
    ///
    /// Another attempt at the delivery may be running now, and its commit would not delete or archive a row that is
    /// kept at the same moment. So this function waits for that attempt, for at most half of the timeout. `tells` says
    /// whether a hook is called for dead deliveries.
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

    /// Records that an attempt at a kept delivery has failed. `None` if another attempt has taken the delivery since.
    /// `not_begun` is the number of attempts that were counted and did not start.
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
                .bind(take.takes)
                .bind(failed.opens_breaker().then_some(served.breaker.failures))
                .bind(interval(served.breaker.probe_interval))
                .bind(by.as_str())
                .bind(tells.then(|| interval(TELLING)))
        };
        KeptAs::read(&self.run(statement).await?)
    }

    /// Subtracts an attempt that was counted and did not start. The next attempt is due after `wait`. If attempts reach
    /// no layer, the wait doubles each time, up to an hour. Returns whether the row still belonged to the attempt.
    pub(crate) async fn give_back(
        &self,
        delivery: &Delivery,
        take: &Take,
        wait: Duration,
        given_back: GivenBack,
    ) -> Result<bool, DatabaseError> {
        let (is_unreached, status) = match given_back {
            GivenBack::NotBegun => (false, None),
            GivenBack::Unreached(status) => (true, status),
        };
        let status = status.map(|status| status.as_u16());
        let statement = || {
            keyed(include_str!("give_back.sql"), delivery)
                .bind(take.takes)
                .bind(interval(wait))
                .bind(i32::from(take.retries > 0))
                .bind(is_unreached)
                .bind(status.map(u16::cast_signed))
        };
        Ok(!self.run(statement).await?.is_empty())
    }

    /// Gives back deliveries that were taken ahead, before there were slots for them, and have not started. `takes` are
    /// their take numbers.
    pub(crate) async fn give_back_ahead(
        &self,
        endpoint: &str,
        keys: &RowKeys,
        takes: &[i64],
    ) -> Result<(), DatabaseError> {
        let statement = || {
            let statement = sqlx::query(include_str!("give_back_ahead.sql"));
            keys.bind(statement, endpoint).bind(takes)
        };
        self.run(statement).await.map(drop)
    }

    /// What has happened to a delivery whose row no longer belongs to the attempt, which started `began` ago.
    pub(crate) async fn what_became(
        &self,
        delivery: &Delivery,
        began: Duration,
    ) -> Result<Became, DatabaseError> {
        let statement = || keyed(include_str!("what_became.sql"), delivery).bind(interval(began));
        let (is_processed, is_kept, is_discarded) = self.read_one(statement).await?;
        Ok(Became {
            is_processed,
            is_kept,
            is_discarded,
        })
    }

    /// Deletes or archives the row of a delivery that another attempt has processed.
    pub(crate) async fn resolve(&self, delivery: &Delivery) -> Result<(), DatabaseError> {
        let statement = || keyed(include_str!("resolve.sql"), delivery);
        self.run(statement).await.map(drop)
    }

    /// Drops the row that this attempt has taken. If it has taken none, drops the kept row of the delivery.
    pub(crate) async fn drop_kept(
        &self,
        delivery: &Delivery,
        take: Option<&Take>,
        dropped: DroppedAs,
    ) -> Result<(), DatabaseError> {
        let key = RowKeys::one(delivery.key_tenant(), delivery.id().as_str());
        let take = take.map(|take| take.takes);
        let drop_row = || keyed(include_str!("drop.sql"), delivery).bind(take);
        // If a replay were not set aside, reconciliation would report it as missing each time. A discarded delivery is
        // always set aside, because it may be on a list that is reconciled later.
        let if_reconciled = dropped == DroppedAs::Replay;
        let set_aside = || set_aside(&key, delivery.endpoint(), if_reconciled);
        let dropped = self.run_all(|| [drop_row(), set_aside()]);
        dropped.await.map(drop)
    }
}
