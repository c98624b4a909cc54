//! How the layer keeps a delivery, and what it writes down of each attempt.

use std::fmt;
use std::time::Duration;

use http::{HeaderName, StatusCode};
use sqlx::Row;
use sqlx::postgres::types::PgInterval;

use super::acceptance::Acceptance;
use super::end::End;
use super::group_commit::GroupCommit;
use super::quota::Quota;
use super::request::{FORMAT, KeptRequest};
use super::schedule::{MAX_DELAY, Schedule};
use super::served;
use crate::delivery::Delivery;
use crate::transaction::{DatabaseError, Store};

/// The longest recorded reason, in characters.
const MAX_REASON: usize = 1000;

/// A failed attempt, with the SQL of who made it, its status and its reason.
macro_rules! failed_attempt {
    ($by:literal, $status:literal, $reason:literal) => {
        concat!(
            "jsonb_build_array(jsonb_build_object(
                'at', extract(epoch from now()),
                'by', '",
            $by,
            "',
                'status', ",
            $status,
            "::int2,
                'reason', left(",
            $reason,
            "::text, 200)
            ))"
        )
    };
}

/// The group of a reason, in SQL: equal for those that differ only in words with digits.
macro_rules! reason_group {
    ($reason:literal) => {
        concat!(
            "md5(
                regexp_replace(",
            $reason,
            "::text, '[A-Za-z_-]*[0-9][0-9A-Za-z_-]*', '#', 'g')
            )::uuid"
        )
    };
}

/// The history of a row, with room for one more of twenty.
macro_rules! history_of {
    ($row:literal) => {
        concat!(
            "case
                when jsonb_array_length(",
            $row,
            ".history) < 20 then ",
            $row,
            ".history
                else ",
            $row,
            ".history - 0
            end"
        )
    };
}

/// Keeps or records a failed attempt of the provider. Does neither if another process has committed
/// the delivery meanwhile.
const KEEP: &str = concat!(
    "
    with before as (
        select state
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    ),
    kept as (
        insert into idempotent_webhook.kept_deliveries as known (
            endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts,
            first_received_at, first_failed_at, last_failed_at, next_attempt_at, status, reason,
            reason_group, body_bytes, history
        )
        select
            $1, $2, $3, $4, $5, $6, 1,
            to_timestamp($7), now(), now(), now() + $8, $9, $10,
            ",
    reason_group!("$10"),
    ",
            octet_length($14),
            ",
    failed_attempt!("provider", "$9", "$10"),
    "
        where not exists (
            select
            from idempotent_webhook.deliveries
            where endpoint = $1 and tenant = $2 and delivery_id = $3
        )
        on conflict (endpoint, tenant, delivery_id) do update
        set event_type = excluded.event_type,
            attempts = known.attempts + 1,
            first_failed_at = coalesce(known.first_failed_at, now()),
            last_failed_at = now(),
            status = excluded.status,
            reason = excluded.reason,
            reason_group = excluded.reason_group,
            state = case
                when known.state = 'recorded' or $16 and excluded.state = 'dead' then excluded.state
                else known.state
            end,
            next_attempt_at = case
                when known.state = 'recorded' then excluded.next_attempt_at
                when $16 then coalesce(excluded.next_attempt_at, known.next_attempt_at)
                else known.next_attempt_at
            end,
            body_bytes = coalesce(known.body_bytes, excluded.body_bytes),
            history = ",
    history_of!("known"),
    " || excluded.history
        returning state
    ),
    request as (
        insert into idempotent_webhook.kept_requests
            (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
        select $1, $2, $3, 1, $11, $12, $13, $14, to_timestamp($15)
        where $14 is not null and exists (select from kept)
        on conflict do nothing
    )
    select state, exists (select from before where state = 'dead') from kept
"
);

/// Writes down that an attempt at a kept delivery has failed.
const FAIL: &str = concat!(
    "
    with failed as (
        update idempotent_webhook.kept_deliveries as kept
        set first_failed_at = coalesce(first_failed_at, now()),
            last_failed_at = now(),
            status = $4,
            reason = $5,
            reason_group = ",
    reason_group!("$5"),
    ",
            running_until = null,
            state = $6,
            next_attempt_at = now() + $7,
            history = ",
    history_of!("kept"),
    " || ",
    failed_attempt!("recovery", "$4", "$5"),
    "
        where endpoint = $1 and tenant = $2 and delivery_id = $3
            and state <> 'recorded'
            -- Unless an operator has begun a new schedule meanwhile.
            and retries = $8
        returning state
    ),
    breaker as (
        insert into idempotent_webhook.kept_endpoints as known (endpoint, failed_ids)
        select $1, array[$3]
        where exists (select from failed)
        on conflict (endpoint) do update
        set failed_ids = known.failed_ids || excluded.failed_ids
        where not known.failed_ids @> excluded.failed_ids and cardinality(known.failed_ids) < 1000
    )
    select state, false from failed
"
);

/// Takes back an attempt that was counted and did not run.
pub(super) const GIVE_BACK: &str = "
    update idempotent_webhook.kept_deliveries
    set attempts = attempts - 1,
        retries = greatest(retries - $4, 0),
        running_until = null,
        next_attempt_at = now() + $5
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and state = 'due'
        and running_until is not null
        and retries = $6
";

/// Which failed deliveries the layer keeps, and how.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    /// Otherwise failures are only recorded.
    pub(crate) requests: bool,
    pub(crate) acknowledge: bool,
    pub(crate) accept_first: bool,
    pub(crate) headers: Vec<HeaderName>,
    /// The largest body that is kept, in bytes.
    pub(crate) body_limit: usize,
    pub(crate) quota: Quota,
    pub(crate) schedule: Schedule,
    pub(super) acceptances: GroupCommit<Acceptance>,
    pub(super) ends: GroupCommit<End>,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            requests: false,
            acknowledge: false,
            accept_first: false,
            headers: Vec::new(),
            body_limit: 1024 * 1024,
            quota: Quota::default(),
            schedule: Schedule::default(),
            acceptances: GroupCommit::default(),
            ends: GroupCommit::default(),
        }
    }
}

/// What is to become of a delivery whose attempt has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Next {
    /// As the schedule says.
    #[default]
    Scheduled,
    After(Duration),
    /// No handler was reached.
    Unhandled,
    Dead,
    Discard,
}

/// A failed attempt at a delivery.
pub(crate) struct FailedAttempt {
    status: StatusCode,
    reason: String,
    next: Next,
}

impl FailedAttempt {
    pub(crate) fn new(status: StatusCode, reason: impl fmt::Display, next: Next) -> Self {
        let reason = reason.to_string();
        Self {
            status,
            // Postgres cannot store NUL, and a panic message may have one.
            reason: reason
                .chars()
                .filter(|c| *c != '\0')
                .take(MAX_REASON)
                .collect(),
            next,
        }
    }

    pub(crate) fn is_discarded(&self) -> bool {
        self.next == Next::Discard
    }

    pub(crate) fn is_unhandled(&self) -> bool {
        self.next == Next::Unhandled
    }

    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// The delay until the next attempt, after `retries` of the schedule. `None` if it is dead.
    fn delay(&self, schedule: &Schedule, retries: u32) -> Option<Duration> {
        match self.next {
            Next::Scheduled | Next::Unhandled => schedule.delay_after(retries),
            Next::After(delay) => schedule.delay_after(retries).map(|_| delay.min(MAX_DELAY)),
            Next::Dead | Next::Discard => None,
        }
    }

    // At most 999.
    fn status(&self) -> i16 {
        self.status.as_u16().cast_signed()
    }
}

/// In which state a failed delivery is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptAs {
    /// Only as a record: nothing is run again.
    Recorded,
    Due,
    Dead,
    /// It was dead before the attempt of the provider.
    StillDead,
}

impl KeptAs {
    fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Due => "due",
            Self::Dead | Self::StillDead => "dead",
        }
    }

    fn of(state: &str, was_dead: bool) -> Self {
        match state {
            "due" => Self::Due,
            "dead" if was_dead => Self::StillDead,
            "dead" => Self::Dead,
            _ => Self::Recorded,
        }
    }
}

impl Store {
    /// Keeps or records a failed attempt of the provider. `None` if it was committed meanwhile.
    pub(crate) async fn keep(
        &self,
        failed: &FailedAttempt,
        delivery: &Delivery,
        request: Option<&KeptRequest>,
        keep: &Keep,
    ) -> Result<Option<KeptAs>, DatabaseError> {
        let delay = failed.delay(&keep.schedule, 0);
        let state = match (request, delay) {
            (None, _) => KeptAs::Recorded,
            (Some(_), Some(_)) => KeptAs::Due,
            (Some(_), None) => KeptAs::Dead,
        };
        let headers = request.map(|request| &*request.headers);
        let statement = || {
            sqlx::query(KEEP)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(delivery.tenant())
                .bind(delivery.event_type())
                .bind(state.as_str())
                .bind(unix_time(delivery.first_received_at()))
                .bind(delay.filter(|_| state == KeptAs::Due).map(interval))
                .bind(failed.status())
                .bind(&failed.reason)
                .bind(request.map(|request| request.method.as_str()))
                .bind(request.map(|request| &*request.uri))
                .bind(headers)
                .bind(request.map(|request| &*request.body))
                .bind(delivery.signed_at().map(unix_time))
                .bind(failed.next != Next::Scheduled)
        };
        let rows = self.run_on_any(statement).await?;
        served::notify();
        state_of(&rows)
    }

    /// Writes down that an attempt at a kept delivery has failed, which was number
    /// `retries` of the schedule. `None` if it is not kept any more.
    pub(crate) async fn fail_kept(
        &self,
        failed: &FailedAttempt,
        delivery: &Delivery,
        retries: u32,
        schedule: &Schedule,
    ) -> Result<Option<KeptAs>, DatabaseError> {
        let delay = failed.delay(schedule, retries);
        let state = match delay {
            Some(_) => KeptAs::Due,
            None => KeptAs::Dead,
        };
        let statement = || {
            sqlx::query(FAIL)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(failed.status())
                .bind(&failed.reason)
                .bind(state.as_str())
                .bind(delay.map(interval))
                .bind(retries.cast_signed())
        };
        let rows = self.run_on_any(statement).await?;
        served::notify();
        state_of(&rows)
    }

    /// Takes back an attempt that did not run, which was number `retries` of the schedule. The next
    /// one is due after `wait`.
    pub(crate) async fn give_back(
        &self,
        delivery: &Delivery,
        retries: u32,
        wait: Duration,
    ) -> Result<(), DatabaseError> {
        let statement = || {
            sqlx::query(GIVE_BACK)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(i32::from(retries > 0))
                .bind(interval(wait))
                .bind(retries.cast_signed())
        };
        let given_back = self.run_on_any(statement).await.map(drop);
        served::notify();
        given_back
    }
}

fn state_of(rows: &[sqlx::postgres::PgRow]) -> Result<Option<KeptAs>, DatabaseError> {
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (state, was_dead): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Some(KeptAs::of(&state, was_dead)))
}

pub(super) fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}

pub(super) fn unix_time(time: std::time::SystemTime) -> f64 {
    time.duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// The columns are written in this format.
const _: () = assert!(FORMAT == 1);
