//! Which kept deliveries an operator means.

use std::time::SystemTime;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

use super::Of;
use crate::pg_time::unix_time;
use crate::recovery::KeptState;

/// A filter that is not given must not cost an index: statements with a filter are planned for it.
const PLAN_FOR_VALUES: &str = "select set_config('plan_cache_mode', 'force_custom_plan', true)";

/// Meets the endpoint `$1`, the tenant `$2` if it is given, and the values of a [`Filter`], `$3` to `$12`.
/// The state as the table has it comes first, for the index. Processed deliveries are meant only if the
/// filter says so.
macro_rules! is_chosen {
    () => {
        "kept.endpoint = $1
        and ($2::text is null or kept.tenant = $2)
        and (
            $3::text is null and kept.state <> 'processed'
            or kept.state = (case when $3 in ('paused', 'due or paused') then 'due' else $3 end)
                and (
                    $3 = 'due or paused'
                    or kept.state <> 'due'
                    or (state.paused_at is not null) = ($3 = 'paused')
                )
        )
        and ($4::text is null or kept.event_type = $4)
        and ($5::text is null or strpos(kept.reason, $5) > 0)
        and ($6::text is null or kept.reason_group = $6::text::uuid)
        and ($7::float8 is null or kept.last_failed_at < to_timestamp($7))
        and ($8::float8 is null or kept.processed_at >= to_timestamp($8))
        and ($9::float8 is null or kept.processed_at < to_timestamp($9))
        and ($10::text[] is null or coalesce(kept.tenant_name, kept.tenant) = any($10))
        and ($11::float8 is null or kept.last_failed_at >= to_timestamp($11))
        and ($12::text is null or kept.processed_version = $12)"
    };
}
pub(super) use is_chosen;

/// Which kept deliveries.
///
/// ```
/// use idempotent_webhook::recovery::{Filter, KeptState};
///
/// let timeouts = Filter::new().state(KeptState::Dead).reason_contains("took longer");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub(super) state: Option<&'static str>,
    event_type: Option<String>,
    reason: Option<String>,
    /// As in the column `reason_group`.
    pub(crate) reason_group: Option<String>,
    pub(super) failed_from: Option<SystemTime>,
    pub(super) failed_before: Option<SystemTime>,
    processed_from: Option<SystemTime>,
    processed_until: Option<SystemTime>,
    processed_by: Option<String>,
    /// By name, also where ids are not separate by tenant.
    pub(crate) tenants: Option<Vec<String>>,
}

impl Filter {
    /// All that are not processed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those in this state.
    #[must_use]
    pub fn state(mut self, state: KeptState) -> Self {
        self.state = Some(state.as_str());
        self
    }

    /// Only those that are run again, now or once their endpoint is resumed.
    #[cfg(feature = "dashboard")]
    pub(crate) fn due_or_paused(mut self) -> Self {
        self.state = Some("due or paused");
        self
    }

    /// Only those of this event type.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// Only those of this tenant, by its name, also where ids are not
    /// [separate](crate::TenantSecrets::separate_ids) by tenant. Of several, those of any of them.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.tenants.get_or_insert_default().push(name.into());
        self
    }

    /// Only those whose last reason has this text.
    #[must_use]
    pub fn reason_contains(mut self, text: impl Into<String>) -> Self {
        self.reason = Some(text.into());
        self
    }

    /// Only those whose last attempt failed before this time. So a retry of what one has seen leaves out
    /// what has failed since.
    #[must_use]
    pub fn failed_before(mut self, time: SystemTime) -> Self {
        self.failed_before = Some(time);
        self
    }

    /// Only those whose last attempt failed at this time or after it.
    #[must_use]
    pub fn failed_from(mut self, time: SystemTime) -> Self {
        self.failed_from = Some(time);
        self
    }

    /// Only those that were processed at this time or after it.
    #[must_use]
    pub fn processed_from(mut self, time: SystemTime) -> Self {
        self.processed_from = Some(time);
        self
    }

    /// Only those that were processed before this time.
    #[must_use]
    pub fn processed_until(mut self, time: SystemTime) -> Self {
        self.processed_until = Some(time);
        self
    }

    /// Only those that this [version](crate::IdempotentWebhook::version) of the application processed. Like the
    /// other filters of processed ones, it is used with [`state`](Self::state) or by
    /// [`reprocess_all`](crate::Endpoint::reprocess_all).
    #[must_use]
    pub fn processed_by(mut self, version: impl Into<String>) -> Self {
        self.processed_by = Some(version.into());
        self
    }

    /// The first twelve values of a statement with `is_chosen`.
    pub(super) fn bind<'q>(
        &'q self,
        sql: &'static str,
        of: Of<'q>,
    ) -> Query<'q, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(of.endpoint)
            .bind(of.tenant)
            .bind(self.state)
            .bind(&self.event_type)
            .bind(&self.reason)
            .bind(&self.reason_group)
            .bind(self.failed_before.map(unix_time))
            .bind(self.processed_from.map(unix_time))
            .bind(self.processed_until.map(unix_time))
            .bind(&self.tenants)
            .bind(self.failed_from.map(unix_time))
            .bind(&self.processed_by)
    }
}

/// For the connection's next statements with a filter, to the end of the transaction.
pub(super) async fn plan_for_values(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(PLAN_FOR_VALUES).execute(tx).await.map(drop)
}
