//! Selections: the filters that decide which deliveries a list shows or an action changes. Reasons that differ only in
//! words with digits, such as ids, belong to the same *reason group*, which has a UUID.

use std::ops::Bound;
use std::time::{Duration, SystemTime};

use maud::Markup;
use serde::Serialize;
use sqlx::PgConnection;

use super::Access;
use super::error::PageError;
use super::html::{Timestamp, hidden};
use super::params::{Link, Params};
use super::rows;
use crate::provider::signature::is_uuid;
use crate::recovery::masked;
use crate::recovery::{Filter, KeptState};

/// The latest reason in a group, among deliveries with these endpoints and states that failed before this time.
macro_rules! latest_reason {
    ($endpoints:literal, $states:literal, $group:literal, $before:literal) => {
        concat!(
            "
    select left(latest.reason, 200)
    from unnest(",
            $endpoints,
            ") as known (endpoint)
    cross join unnest(",
            $states,
            ") as states (state)
    cross join lateral (
        select kept.reason, kept.last_failed_at
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = known.endpoint and kept.state = states.state
            and kept.last_failed_at is not null
            and kept.reason_group = ",
            $group,
            "
            and kept.last_failed_at < ",
            $before,
            "
        order by kept.last_failed_at desc
        limit 1
    ) as latest
    order by latest.last_failed_at desc
    limit 1
"
        )
    };
}
pub(super) use latest_reason;

const REASON: &str = latest_reason!(
    "$1::text[]",
    "$2::text[]",
    "$3::text::uuid",
    "coalesce(to_timestamp($4::float8), 'infinity')"
);

/// The filters that choose the deliveries of a list or of a bulk action.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Selection {
    pub(super) endpoint: Option<String>,
    pub(super) state: State,
    pub(super) event_type: Option<String>,
    pub(super) tenant: Option<String>,
    /// The time when deliveries last failed or were processed: at or after `from`, and before `until`.
    pub(super) from: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    /// The UUID of a reason group.
    pub(super) reason: Option<String>,
    /// The latest reason in the group, masked, after [`look_up_reason`](Self::look_up_reason) has found it.
    pub(super) reason_example: Option<String>,
    /// For an action: the time when the operator saw the list of its deliveries, in Unix seconds.
    pub(super) before: Option<f64>,
    /// The requested tenant, or otherwise the tenants that the reader may see. `None` for all tenants.
    #[serde(skip)]
    pub(super) tenants: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Dead and recorded deliveries, and due deliveries that have failed.
    Failing,
    Dead,
    Due,
    Recorded,
    Processed,
}

impl State {
    const ALL: [Self; 5] = [
        Self::Failing,
        Self::Dead,
        Self::Due,
        Self::Recorded,
        Self::Processed,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Dead => "dead",
            Self::Due => "due",
            Self::Recorded => "recorded",
            Self::Processed => "processed",
        }
    }
}

impl Selection {
    pub(super) fn of(params: &Params, access: &Access) -> Result<Self, PageError> {
        let state = params.get("state").unwrap_or("failing");
        let state = State::ALL.into_iter().find(|known| known.as_str() == state);
        let state = state.ok_or(PageError::bad_request("There is no such state."))?;
        let reason = params.get("reason");
        if reason.is_some_and(|reason| !is_uuid(reason)) {
            return Err(PageError::bad_request("There is no such reason."));
        }
        let tenant = params.get("tenant").map(str::to_owned);
        let tenants = match (&tenant, access.tenants()) {
            (Some(tenant), _) if access.sees_tenant(tenant) => Some(vec![tenant.clone()]),
            (Some(_), _) => Some(Vec::new()),
            (None, tenants) => tenants.map(<[_]>::to_vec),
        };
        Ok(Self {
            endpoint: params.get("endpoint").map(str::to_owned),
            state,
            event_type: params.get("event_type").map(str::to_owned),
            tenant,
            from: params.time("from")?,
            until: params.time("until")?,
            reason: reason.map(str::to_owned),
            reason_example: None,
            before: params.seconds("before"),
            tenants,
        })
    }

    /// The filters as hidden fields of a form.
    pub(super) fn hidden(&self) -> Markup {
        let fields = self.fields();
        let fields = fields
            .each_ref()
            .map(|(name, value)| (*name, value.as_deref()));
        hidden(&fields)
    }

    pub(super) fn without_reason(&self) -> Self {
        Self {
            reason: None,
            ..self.clone()
        }
    }

    pub(super) fn link(&self, page: &'static str) -> Link {
        let mut link = Link::to(page);
        for (name, value) in self.fields() {
            link = link.with_some(name, value);
        }
        link
    }

    fn fields(&self) -> [(&'static str, Option<String>); 7] {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        [
            ("endpoint", self.endpoint.clone()),
            ("state", Some(self.state.as_str().to_owned())),
            ("event_type", self.event_type.clone()),
            ("tenant", self.tenant.clone()),
            ("from", time(self.from)),
            ("until", time(self.until)),
            ("reason", self.reason.clone()),
        ]
    }

    /// The states, as the table `kept_deliveries` names them.
    pub(super) fn states(&self) -> &'static [&'static str] {
        match self.state {
            State::Failing => &["dead", "due", "recorded"],
            State::Dead => &["dead"],
            State::Due => &["due"],
            State::Recorded => &["recorded"],
            State::Processed => &["processed"],
        }
    }

    /// Whether the list shows all due deliveries in the order of their next attempts, including deliveries that have
    /// not failed yet. With any further filter, the list of due deliveries contains only failed deliveries, latest
    /// first.
    pub(super) fn is_by_next_attempt(&self) -> bool {
        self.state == State::Due
            && self.reason.is_none()
            && self.event_type.is_none()
            && self.tenants.is_none()
            && self.from.is_none()
            && self.until.is_none()
    }

    /// Whether no index covers the filters, so that each page searches a limited number of deliveries.
    pub(super) fn is_searched(&self) -> bool {
        let has_index = match self.state {
            State::Processed => self.event_type.is_none(),
            _ => self.event_type.is_none() || self.reason.is_none(),
        };
        !has_index || self.tenants.is_some()
    }

    /// Whether a [`Filter`] can describe an action on the whole selection. A selection over several endpoints must have
    /// a reason. Otherwise, if the parameter `endpoint` were lost, the action would apply to all endpoints.
    pub(super) fn is_for_bulk_actions(&self) -> bool {
        match self.state {
            // The table of processed deliveries stores a tenant only if the tenant is part of the key. A list that is
            // filtered by tenant leaves out all other deliveries, but an action with this filter could change them.
            State::Processed => self.endpoint.is_some() && self.tenants.is_none(),
            State::Failing | State::Dead | State::Due | State::Recorded => {
                self.endpoint.is_some() || self.reason.is_some()
            }
        }
    }

    /// The filter for the deliveries that a bulk action changes: deliveries that had already failed or been processed
    /// when the operator saw them. Like every operation on many deliveries, the action leaves out deliveries that have
    /// arrived again since then.
    pub(super) fn filter(&self) -> Filter {
        let time = |seconds: f64| {
            let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            SystemTime::UNIX_EPOCH + time
        };
        // The filter always has a start time, at least zero: a delivery that has not failed has no time of failure, so
        // any start time leaves it out.
        let from = self.from.map_or(0.0, |Timestamp(from)| from);
        let until = match (self.until, self.before) {
            (Some(Timestamp(until)), Some(before)) => Some(until.min(before)),
            (until, before) => until.map(|Timestamp(until)| until).or(before),
        };
        let until = until.map(time);
        let mut filter = match self.state {
            State::Failing => Filter::new(),
            State::Dead => Filter::new().state(KeptState::Dead),
            State::Due => Filter::new().state(KeptState::Due),
            State::Recorded => Filter::new().state(KeptState::Recorded),
            State::Processed => Filter::new().state(KeptState::Processed),
        };
        let times = (
            Bound::Included(time(from)),
            until.map_or(Bound::Unbounded, Bound::Excluded),
        );
        filter = match self.state {
            State::Processed => filter.processed(times),
            _ => filter.failed(times),
        };
        if let Some(event_type) = &self.event_type {
            filter = filter.event_type(event_type);
        }
        filter.reason_group.clone_from(&self.reason);
        filter.tenants.clone_from(&self.tenants);
        filter.received_before = self.before;
        filter
    }

    /// A description for the confirmation. It contains nothing from a payload.
    pub(super) fn in_words(&self) -> String {
        let example = self.reason_example.as_deref();
        with_reason(self.for_record(), self.reason.as_deref(), example)
    }

    /// A description for the record of actions. It leaves out the reason, because an example of the reason would stay
    /// in the record after the deliveries are erased.
    pub(super) fn for_record(&self) -> String {
        let mut words = match self.state {
            State::Failing => "failed deliveries",
            State::Dead => "dead deliveries",
            State::Due => "failed deliveries that are due",
            State::Recorded => "deliveries that are only recorded",
            State::Processed => "processed deliveries that are still kept",
        }
        .to_owned();
        if let Some(event_type) = &self.event_type {
            words += &format!(", of the event type {event_type}");
        }
        if let Some(tenants) = &self.tenants {
            words += &format!(", of the tenant {}", tenants.join(" or "));
        }
        if let Some(from) = self.from {
            words += &format!(", from {from}");
        }
        if let Some(until) = self.until {
            words += &format!(", until {until}");
        }
        words
    }

    /// The selected endpoints that are known and that the viewer may see.
    pub(super) async fn endpoints(
        &self,
        connection: &mut PgConnection,
        access: &Access,
    ) -> sqlx::Result<Vec<String>> {
        match &self.endpoint {
            Some(endpoint) if access.sees_endpoint(endpoint) => Ok(vec![endpoint.clone()]),
            Some(_) => Ok(Vec::new()),
            None => rows::endpoints(connection, access).await,
        }
    }

    /// Limits `before` to now, because a list cannot have been shown in the future.
    pub(super) fn bound(&mut self, now: f64) {
        self.before = self.before.map(|before| before.min(now));
    }

    /// Finds the latest reason in the group, among these endpoints and before `self.before`. The reason may come from
    /// any tenant, so only operators who may see all tenants get one.
    pub(super) async fn look_up_reason(
        &mut self,
        connection: &mut PgConnection,
        endpoints: &[String],
    ) -> sqlx::Result<()> {
        if self.reason.is_some() && self.tenants.is_none() {
            let example: Option<Option<String>> = sqlx::query_scalar(REASON)
                .bind(endpoints)
                .bind(self.states())
                .bind(&self.reason)
                .bind(self.before)
                .fetch_optional(connection)
                .await?;
            self.reason_example = example.flatten().map(|example| masked(&example));
        }
        Ok(())
    }

    pub(super) fn meaning_of_nothing(&self) -> &'static str {
        match self.state {
            State::Failing => {
                "Nothing is failing here. A delivery whose handler fails stays here until it is processed, if the \
                 layer keeps or records it."
            }
            State::Dead => {
                "Nothing is dead here. A delivery whose attempts are used up stays here until somebody retries or \
                 discards it."
            }
            State::Due => "Nothing is due. Deliveries that run again will be listed here.",
            State::Recorded => {
                "Nothing is recorded here. A failed delivery whose request is not kept stays here until the provider \
                 sends it again."
            }
            State::Processed => {
                "Nothing yet. Processed deliveries will be listed here, until retention deletes them."
            }
        }
    }
}

/// Adds the reason to the description of a selection by reason group. The reason is a masked example, if any delivery
/// still has a reason of that group.
pub(super) fn with_reason(words: String, group: Option<&str>, example: Option<&str>) -> String {
    match (group, example) {
        (None, _) => words,
        (Some(_), Some(example)) => format!("{words}, with a reason like “{example}”"),
        (Some(group), None) => format!("{words}, with a reason of the group {group}"),
    }
}
