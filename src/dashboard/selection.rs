//! Which deliveries a list shows, or an action changes.

use std::time::{Duration, SystemTime};

use sqlx::PgConnection;

use super::error::PageError;
use super::params::{Link, Params};
use crate::recovery::{Filter, KeptState};

const REASON: &str = "
    select left(latest.reason, 200)
    from unnest($1::text[]) as known (endpoint)
    cross join unnest($2::text[]) as states (state)
    cross join lateral (
        select kept.reason, kept.last_failed_at
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = known.endpoint and kept.state = states.state
            and kept.last_failed_at is not null
            and kept.reason_group = $3::text::uuid
            and ($4::float8 is null or kept.last_failed_at <= to_timestamp($4))
        order by kept.last_failed_at desc
        limit 1
    ) as latest
    order by latest.last_failed_at desc
    limit 1
";

/// Which deliveries, as a list and a bulk action have them.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) endpoint: Option<String>,
    pub(super) state: State,
    pub(super) event_type: Option<String>,
    /// A UUID, as in the column `reason_group`.
    pub(super) reason: Option<String>,
    /// The latest reason of the group, once it has been [looked up](Self::look_up_reason).
    pub(super) reason_example: Option<String>,
    /// For an action: the time when its deliveries were shown, in Unix seconds.
    pub(super) before: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Any, if an attempt has failed.
    Failing,
    Dead,
    Due,
    Recorded,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Dead => "dead",
            Self::Due => "due",
            Self::Recorded => "recorded",
        }
    }
}

impl Selection {
    pub(super) fn of(params: &Params) -> Result<Self, PageError> {
        let state = match params.get("state") {
            None | Some("failing") => State::Failing,
            Some("dead") => State::Dead,
            Some("due") => State::Due,
            Some("recorded") => State::Recorded,
            Some(_) => return Err(PageError::bad_request("There is no such state.")),
        };
        let reason = params.get("reason");
        if reason.is_some_and(|reason| !is_uuid(reason)) {
            return Err(PageError::bad_request("There is no such reason."));
        }
        Ok(Self {
            endpoint: params.get("endpoint").map(str::to_owned),
            state,
            event_type: params.get("event_type").map(str::to_owned),
            reason: reason.map(str::to_owned),
            reason_example: None,
            before: params.seconds("before"),
        })
    }

    pub(super) fn without_reason(&self) -> Self {
        Self {
            reason: None,
            ..self.clone()
        }
    }

    pub(super) fn link(&self, page: &'static str) -> Link {
        Link::to(page)
            .with_some("endpoint", self.endpoint.as_ref())
            .with("state", self.state.as_str())
            .with_some("event_type", self.event_type.as_ref())
            .with_some("reason", self.reason.as_ref())
    }

    /// As the fields of a form.
    pub(super) fn fields(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("endpoint", self.endpoint.as_deref()),
            ("state", Some(self.state.as_str())),
            ("event_type", self.event_type.as_deref()),
            ("reason", self.reason.as_deref()),
        ]
    }

    /// The states as the table has them.
    pub(super) fn states(&self) -> &'static [&'static str] {
        match self.state {
            State::Failing => &["dead", "due", "recorded"],
            State::Dead => &["dead"],
            State::Due => &["due"],
            State::Recorded => &["recorded"],
        }
    }

    /// Whether the list is in the order of the next attempts: all that is due, also what has not
    /// failed yet. By reason or event type it is a list of failures.
    pub(super) fn is_by_next_attempt(&self) -> bool {
        self.state == State::Due && self.reason.is_none() && self.event_type.is_none()
    }

    /// Whether an action on all of it can be described by a [`Filter`].
    pub(super) fn is_for_bulk_actions(&self) -> bool {
        self.endpoint.is_some() && self.state != State::Failing
    }

    /// Which deliveries a bulk action changes: those that had failed when they were shown.
    pub(super) fn filter(&self) -> Filter {
        let mut filter = match self.state {
            State::Failing => Filter::new(),
            State::Dead => Filter::new().state(KeptState::Dead),
            State::Due => Filter::new().due_or_paused(),
            State::Recorded => Filter::new().state(KeptState::Recorded),
        };
        if let Some(event_type) = &self.event_type {
            filter = filter.event_type(event_type);
        }
        if let Some(before) = self.before {
            let before = Duration::try_from_secs_f64(before).unwrap_or_default();
            filter = filter.failed_before(SystemTime::UNIX_EPOCH + before);
        }
        filter.reason_group.clone_from(&self.reason);
        filter
    }

    /// For the confirmation, and for the record.
    pub(super) fn in_words(&self) -> String {
        let mut words = match self.state {
            State::Failing => "what has failed",
            State::Dead => "what is dead",
            State::Due => "what has failed and is due",
            State::Recorded => "what is only recorded",
        }
        .to_owned();
        if let Some(event_type) = &self.event_type {
            words += &format!(", of the event type {event_type}");
        }
        if let Some(reason) = &self.reason {
            words += &match &self.reason_example {
                Some(example) => format!(", with a reason like “{example}”"),
                None => format!(", with a reason of the group {reason}"),
            };
        }
        words
    }

    /// Finds the latest reason of the group, of these endpoints and until this time.
    pub(super) async fn look_up_reason(
        &mut self,
        connection: &mut PgConnection,
        endpoints: &[String],
    ) -> sqlx::Result<()> {
        if self.reason.is_some() {
            self.reason_example = sqlx::query_scalar(REASON)
                .bind(endpoints)
                .bind(self.states())
                .bind(&self.reason)
                .bind(self.before)
                .fetch_optional(connection)
                .await?
                .flatten();
        }
        Ok(())
    }

    pub(super) fn meaning_of_nothing(&self) -> &'static str {
        match self.state {
            State::Failing => {
                "Nothing is failing here. Deliveries whose handler has failed will be here until \
                 they are processed, if the layer keeps or records them."
            }
            State::Dead => {
                "Nothing is dead here. Deliveries whose attempts are used up will be here until \
                 somebody retries or discards them."
            }
            State::Due => "Nothing is due here. Deliveries that run again will be here.",
            State::Recorded => {
                "Nothing here. Failures whose request is not kept will be here, until the provider \
                 delivers them again."
            }
        }
    }
}

fn is_uuid(text: &str) -> bool {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| {
            if DASHES.contains(&index) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}
