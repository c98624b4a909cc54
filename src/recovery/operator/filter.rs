//! The filter with which an operator chooses kept deliveries.

use std::ops::{Bound, RangeBounds};
use std::time::{Duration, SystemTime};

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

use super::Scope;
use super::operation::Operation;
use crate::recovery::KeptState;
use crate::transaction::pg_time::unix_time;

/// Statements with a filter are planned for their values. Otherwise, the conditions of the filter that are not set
/// would keep the planner from using an index. The planner may sort the result. If it could not, it would read rows in
/// the order of the primary key, and so read the archive.
const PLAN_FOR_VALUES: &str = "
    select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_sort', 'on', true)
";

/// The delivery belongs to the endpoint `$1` and has one of the states `$3` (the values of the column `state`). Each
/// state has a partial index, and each condition repeats the condition of that index, so that Postgres can use it. With
/// one condition for all states, Postgres would read the archive to find dead deliveries.
macro_rules! is_listed {
    () => {
        "kept.endpoint = $1
        and (
            kept.state = 'due' and 'due' = any($3::text[])
            or kept.state = 'dead' and 'dead' = any($3::text[])
            or kept.state = 'recorded' and kept.delivery_id > '' and 'recorded' = any($3::text[])
            or kept.state = 'processed' and 'processed' = any($3::text[])
        )"
    };
}
pub(super) use is_listed;

/// The delivery matches the tenant `$2` if it is given, and the other values of a [`Filter`], `$4` to `$13`.
macro_rules! meets_filter {
    () => {
        "($2::text is null or kept.tenant = $2)
        and ($4::text is null or kept.event_type = $4)
        and ($5::text is null or strpos(kept.reason, $5) > 0)
        and ($6::text is null or kept.reason_group = $6::text::uuid)
        and ($7::float8 is null or kept.last_failed_at < to_timestamp($7))
        and ($8::float8 is null or kept.processed_at >= to_timestamp($8))
        and ($9::float8 is null or kept.processed_at < to_timestamp($9))
        and ($10::text[] is null or coalesce(kept.tenant_name, kept.tenant) = any($10))
        and ($11::float8 is null or kept.last_failed_at >= to_timestamp($11))
        and ($12::text is null or kept.processed_version = $12)
        and ($13::float8 is null or kept.last_received_at < to_timestamp($13))"
    };
}
pub(super) use meets_filter;

/// Chooses kept deliveries.
///
/// ```
/// use idempotent_webhook::recovery::{Filter, KeptState};
///
/// let timeouts = Filter::new().state(KeptState::Dead).reason_contains("took longer");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    state: Option<KeptState>,
    event_type: Option<String>,
    reason: Option<String>,
    /// A value of the column `reason_group`, which is the same for similar reasons.
    pub(crate) reason_group: Option<String>,
    failed: Times,
    processed: Times,
    processed_by: Option<String>,
    /// The names of tenants. They are compared even if the tenants share one namespace of ids.
    pub(crate) tenants: Option<Vec<String>>,
    /// Only deliveries that were last received before this time, even if they fail or are processed afterwards. In
    /// Unix seconds, by the clock of the database.
    pub(crate) received_before: Option<f64>,
}

/// A range of times: at or after `from`, and before `until`.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    from: Option<SystemTime>,
    until: Option<SystemTime>,
}

impl Times {
    fn of(range: impl RangeBounds<SystemTime>) -> Self {
        Self {
            from: match range.start_bound() {
                Bound::Included(from) => Some(*from),
                Bound::Excluded(before) => next(before),
                Bound::Unbounded => None,
            },
            until: match range.end_bound() {
                Bound::Included(last) => next(last),
                Bound::Excluded(until) => Some(*until),
                Bound::Unbounded => None,
            },
        }
    }
}

/// The next time that Postgres can store: its times have microseconds.
fn next(time: &SystemTime) -> Option<SystemTime> {
    time.checked_add(Duration::from_micros(1))
}

impl Filter {
    /// All deliveries that are not processed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only deliveries in this state.
    #[must_use]
    pub fn state(mut self, state: KeptState) -> Self {
        self.state = Some(state);
        self
    }

    /// Only deliveries of this event type.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// Only deliveries of the tenant with this name, even if ids are not [separate](crate::TenantSecrets::separate_ids)
    /// by tenant. If you call this several times, deliveries of any of these tenants match.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.tenants.get_or_insert_default().push(name.into());
        self
    }

    /// Only deliveries whose last failure reason contains this text.
    #[must_use]
    pub fn reason_contains(mut self, text: impl Into<String>) -> Self {
        self.reason = Some(text.into());
        self
    }

    /// Only deliveries whose last attempt failed within these times, such as `from..until`. With `..now`, an operation
    /// leaves out failures that occur after you have looked.
    #[must_use]
    pub fn failed(mut self, times: impl RangeBounds<SystemTime>) -> Self {
        self.failed = Times::of(times);
        self
    }

    /// Only deliveries that were processed within these times, such as `deployed..`.
    #[must_use]
    pub fn processed(mut self, times: impl RangeBounds<SystemTime>) -> Self {
        self.processed = Times::of(times);
        self
    }

    /// Only deliveries that this [version](crate::IdempotentWebhook::version) of the application processed. Like the
    /// other filters for processed deliveries, it needs [`state`](Self::state) or
    /// [`reprocess_all`](crate::Endpoint::reprocess_all).
    #[must_use]
    pub fn processed_by(mut self, version: impl Into<String>) -> Self {
        self.processed_by = Some(version.into());
        self
    }

    /// Whether a list with this filter shows only processed deliveries.
    pub(super) fn is_of_processed(&self) -> bool {
        self.state == Some(KeptState::Processed)
    }

    /// Binds the first thirteen values of a statement with this filter. A filter without a state means all of
    /// `states`.
    fn bind_states<'q>(
        &'q self,
        sql: &'static str,
        scope: Scope<'q>,
        states: &[&'static str],
    ) -> Query<'q, Postgres, PgArguments> {
        let states: Vec<_> = states
            .iter()
            .copied()
            .filter(|state| self.state.is_none_or(|only| only.as_str() == *state))
            .collect();
        sqlx::query(sql)
            .bind(scope.endpoint)
            .bind(scope.tenant)
            .bind(states)
            .bind(&self.event_type)
            .bind(&self.reason)
            .bind(&self.reason_group)
            .bind(self.failed.until.map(unix_time))
            .bind(self.processed.from.map(unix_time))
            .bind(self.processed.until.map(unix_time))
            .bind(&self.tenants)
            .bind(self.failed.from.map(unix_time))
            .bind(&self.processed_by)
            .bind(self.received_before)
    }

    /// Binds these thirteen values for a list or a count. Processed deliveries are included only if the filter asks for
    /// them.
    pub(super) fn bind_listed<'q>(
        &'q self,
        sql: &'static str,
        scope: Scope<'q>,
    ) -> Query<'q, Postgres, PgArguments> {
        const ALL: [&str; 4] = ["recorded", "due", "dead", "processed"];
        let states = match self.state {
            None => &ALL[..3],
            Some(_) => &ALL,
        };
        self.bind_states(sql, scope, states)
    }

    /// Binds the first fourteen values of a statement about deliveries that an operation can change.
    pub(super) fn bind<'q>(
        &'q self,
        sql: &'static str,
        scope: Scope<'q>,
        operation: Operation,
    ) -> Query<'q, Postgres, PgArguments> {
        self.bind_states(sql, scope, operation.states())
            .bind(operation.as_str())
    }
}

/// Makes Postgres plan the statements on this connection for their values, until the end of the transaction.
pub(super) async fn plan_for_values(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(PLAN_FOR_VALUES).execute(tx).await.map(drop)
}
