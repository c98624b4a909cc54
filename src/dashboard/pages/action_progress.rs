//! The progress of an action, and the results of the deliveries that it made due.

use maud::{Markup, Render, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::error::PageError;
use super::super::html::{Table, Timestamp, button, empty, facts, short, state, status, visible};
use super::super::operate::recorded_actions::{self, Recorded, state_of_due};
use super::super::params::{Link, Params};
use super::super::rows::{self, Key, grouped};
use super::super::view::View;
use super::super::{Access, Shared};
use super::actions::{by, on};

/// The largest number of an action's deliveries that the page reads.
const MAX_DELIVERIES: i64 = 10_000;

/// The deliveries that the action `$1` made due, at most `$2`.
macro_rules! of_action {
    () => {
        "
    from (
        select *
        from idempotent_webhook.operator_action_deliveries
        where action = $1
        order by action, endpoint, tenant, delivery_id
        limit $2
    ) as of_action"
    };
}

/// The deliveries of the action that are still kept.
const KEPT: &str = concat!(
    "
    select
        case
            when kept.state = 'due' and kept.last_failed_at > action.began_at then 'failed again'
            else kept.state
        end as outcome,
        kept.reason_group::text,
        kept.endpoint,
        kept.state,
        count(*) as count,
        (array_agg(left(kept.reason, 300) order by kept.last_failed_at desc))[1] as reason,
        (array_agg(kept.status order by kept.last_failed_at desc))[1] as status",
    of_action!(),
    "
    cross join (
        select began_at from idempotent_webhook.operator_actions where id = $1
    ) as action
    join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    group by outcome, kept.reason_group, kept.endpoint, kept.state
    order by count desc
"
);

/// The deliveries of the action that are no longer kept.
const ENDED: &str = concat!(
    "
    select of_action.endpoint, of_action.tenant, of_action.delivery_id",
    of_action!(),
    "
    left join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    where kept.endpoint is null
"
);

/// Counts the processed deliveries. This is a separate statement so that it also works if `deliveries` is a distributed
/// table.
const PROCESSED: &str = "
    select count(*)
    from idempotent_webhook.deliveries
    where (delivery_id, endpoint, tenant) in (
        select * from unnest($1::text[], $2::text[], $3::text[])
    )
";

#[derive(Serialize)]
pub(in crate::dashboard) struct ActionPage {
    now: Timestamp,
    #[serde(flatten)]
    recorded: Recorded,
    /// Set if the action has made deliveries due.
    outcomes: Option<Outcomes>,
}

/// What became of the deliveries that the page has read.
#[derive(Debug, Default, Serialize)]
struct Outcomes {
    processed: i64,
    /// Deliveries whose first attempt since the action has not finished.
    due: i64,
    /// Deliveries that have failed since the action, and are due again.
    failed_again: i64,
    dead: i64,
    /// Deliveries that were discarded or deleted by retention since the action.
    gone: i64,
    reasons: Vec<Reason>,
}

/// Why some deliveries have failed since the action.
#[derive(Debug, Serialize)]
struct Reason {
    endpoint: String,
    state: String,
    reason_group: String,
    reason: String,
    status: Option<i16>,
    deliveries: i64,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<ActionPage, PageError> {
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let recorded = match params.number("id") {
        Some(id) => recorded_actions::one(&mut reading, access, id).await?,
        None => None,
    };
    let Some(mut recorded) = recorded else {
        reading.end();
        return Err(PageError::not_found("There is no such action."));
    };
    let mut outcomes = None;
    if recorded.runs_deliveries() && recorded.changed > 0 {
        let counted = Outcomes::read(&mut reading, access, recorded.id).await?;
        let waiting = counted.due + counted.failed_again;
        // The state stays `made due` if some deliveries were not read, because they may still be
        // due.
        if recorded.state == "made due" && (waiting > 0 || counted.all() >= recorded.changed) {
            recorded.state = state_of_due(Some(waiting));
        }
        outcomes = Some(counted).filter(|counted| counted.all() > 0);
    }
    reading.end();
    Ok(ActionPage {
        now,
        recorded,
        outcomes,
    })
}

impl Outcomes {
    fn all(&self) -> i64 {
        self.processed + self.due + self.failed_again + self.dead + self.gone
    }

    async fn read(
        connection: &mut PgConnection,
        access: &Access,
        action: i64,
    ) -> sqlx::Result<Self> {
        let mut outcomes = Self::default();
        let rows = sqlx::query(KEPT).bind(action).bind(MAX_DELIVERIES);
        for row in rows.fetch_all(&mut *connection).await? {
            let count: i64 = row.try_get("count")?;
            let outcome: &str = row.try_get("outcome")?;
            match outcome {
                "processed" => outcomes.processed += count,
                "failed again" => outcomes.failed_again += count,
                "dead" | "recorded" => outcomes.dead += count,
                _ => outcomes.due += count,
            }
            if !matches!(outcome, "failed again" | "dead") {
                continue;
            }
            let reason: Option<String> = row.try_get("reason")?;
            let group: Option<String> = row.try_get("reason_group")?;
            outcomes.reasons.push(Reason {
                endpoint: row.try_get("endpoint")?,
                state: row.try_get("state")?,
                reason_group: group.unwrap_or_default(),
                reason: access.reason(reason.unwrap_or_default()),
                status: row.try_get("status")?,
                deliveries: count,
            });
        }
        let rows = sqlx::query(ENDED).bind(action).bind(MAX_DELIVERIES);
        let rows = rows.fetch_all(&mut *connection).await?;
        let ended = rows
            .iter()
            .map(Key::read)
            .collect::<sqlx::Result<Vec<_>>>()?;
        if !ended.is_empty() {
            let column = |of: fn(&Key) -> &str| ended.iter().map(of).collect::<Vec<_>>();
            let processed: i64 = sqlx::query_scalar(PROCESSED)
                .bind(column(|key| &key.id))
                .bind(column(|key| &key.endpoint))
                .bind(column(|key| &key.tenant))
                .fetch_one(connection)
                .await?;
            outcomes.processed += processed;
            outcomes.gone = ended.len() as i64 - processed;
        }
        Ok(outcomes)
    }
}

impl View for ActionPage {
    fn title(&self) -> String {
        "Action".into()
    }

    fn content(&self, viewer: &Access) -> Markup {
        let recorded = &self.recorded;
        let id = recorded.id.to_string();
        html! {
            (facts(&[
                ("Action", Some(html! { (recorded.action) })),
                ("State", Some(state(recorded.state))),
                (
                    "Deliveries changed",
                    Some(html! { span.changed { (grouped(recorded.changed)) } }),
                ),
                (
                    "Not changed, because they were running",
                    (recorded.running > 0).then(|| html! { (grouped(recorded.running)) }),
                ),
                ("On", Some(on(recorded))),
                ("By", Some(by(recorded.operator.as_deref()))),
                ("Began", Some(recorded.began.with_age(self.now))),
                ("Ended", recorded.ended.map(|at| at.with_age(self.now))),
                (
                    "Cancelled by",
                    recorded.cancelled_by.as_deref().map(|name| by(Some(name))),
                ),
                ("Note", recorded.note.as_deref().map(|note| html! { (visible(note)) })),
            ]))
            @if self.is_live() {
                div.actions {
                    @if recorded.is_running() && viewer.may_operate() {
                        (button(&html! { "Cancel" }, "cancel", &[("id", Some(&*id))]))
                    }
                    a.button href=(Link::to("action").with("id", &id)) { "Refresh" }
                }
            }
            @if recorded.state == "interrupted" {
                p {
                    "The process that ran this action stopped before the action was finished. The deliveries that it \
                     has changed are counted above. Start the action again for the others."
                }
            }
            @match &self.outcomes {
                Some(outcomes) => { (self.outcomes(outcomes)) }
                None if recorded.runs_deliveries() && recorded.changed > 0 => {
                    (empty("The deliveries are no longer on record."))
                }
                None => {}
            }
        }
    }

    fn refresh(&self) -> Option<u32> {
        self.is_live().then_some(2)
    }
}

impl ActionPage {
    fn is_live(&self) -> bool {
        self.recorded.is_running() || self.recorded.state == "under way"
    }

    fn outcomes(&self, outcomes: &Outcomes) -> Markup {
        let number = |number: i64| Some(html! { (grouped(number)) });
        let if_any = |count: i64| (count > 0).then(|| html! { (grouped(count)) });
        html! {
            h2 { "How they are now" }
            @if self.recorded.changed > MAX_DELIVERIES {
                p.muted { "Only " (grouped(MAX_DELIVERIES)) " of them are counted here." }
            }
            (facts(&[
                ("Processed", number(outcomes.processed)),
                ("Still due", number(outcomes.due)),
                ("Failed again, and due", if_any(outcomes.failed_again)),
                ("Dead", if_any(outcomes.dead)),
                ("Discarded or deleted since", if_any(outcomes.gone)),
            ]))
            @if !outcomes.reasons.is_empty() {
                h3 { "Why they failed" }
                (reasons(&outcomes.reasons))
            } @else if outcomes.due > 0 {
                (empty("None has failed again."))
            }
        }
    }
}

fn reasons(reasons: &[Reason]) -> Markup {
    Table::of(reasons)
        .number("Deliveries", |reason| {
            let these = Link::to("deliveries")
                .with("endpoint", &reason.endpoint)
                .with("state", &reason.state)
                .with("reason", &reason.reason_group);
            html! { a href=(these) { (grouped(reason.deliveries)) } }
        })
        .styled("reason", "Reason", |reason| short(&reason.reason, 160))
        .column("Status", |reason| status(reason.status))
        .column("State", |reason| state(&reason.state))
        .column("Endpoint", |reason| html! { (visible(&reason.endpoint)) })
        .render()
}
