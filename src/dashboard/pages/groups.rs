//! Failures grouped by reason: each reason once, for all endpoints together.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::Access;
use super::super::html::{Table, Timestamp, count, short, state, status, visible};
use super::super::params::Link;
use super::super::rows::{Count, count_kept};

/// The largest number of reasons that are shown.
const MAX_GROUPS: usize = 50;

/// The largest number of combinations of endpoint, state and reason that are read.
const MAX_PARTS: usize = 3_000;

/// The reasons of each endpoint and state. An index scan jumps from each reason to the next, so that the number of
/// deliveries per reason does not matter. The index is read backwards, so the first entry found for a reason is its
/// latest failure.
const REASONS: &str = "
    with recursive reasons as (
        select scope.endpoint, scope.state, first.reason_group, first.last_failed_at
        from (
            select endpoint, state
            from unnest($1::text[]) as known (endpoint)
            cross join unnest(array['dead', 'due', 'recorded']) as states (state)
        ) as scope
        cross join lateral (
            select kept.reason_group, kept.last_failed_at
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = scope.endpoint and kept.state = scope.state
                and kept.last_failed_at is not null and kept.reason_group is not null
            order by kept.reason_group desc, kept.last_failed_at desc
            limit 1
        ) as first
        union all
        select reasons.endpoint, reasons.state, next.reason_group, next.last_failed_at
        from reasons
        cross join lateral (
            select kept.reason_group, kept.last_failed_at
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = reasons.endpoint and kept.state = reasons.state
                and kept.last_failed_at is not null
                and kept.reason_group < reasons.reason_group
            order by kept.reason_group desc, kept.last_failed_at desc
            limit 1
        ) as next
    )
    select
        endpoint, state, reason_group::text as reason_group,
        extract(epoch from last_failed_at)::float8 as last_failed_at
    from reasons
    limit $2
";

/// One row for each endpoint in `$1`, in the same order. The state and the reason of the row are at the same index in
/// `$3` and `$4`. Deliveries are counted up to one more than `$2`.
const PARTS: &str = concat!(
    "
    select
        example.status, left(example.reason, 300) as reason,
        (
            select extract(epoch from kept.first_failed_at)::float8
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = part.endpoint and kept.state = part.state
                and kept.last_failed_at is not null
                and kept.reason_group = part.reason_group
            order by kept.first_failed_at
            limit 1
        ) as since,
        (",
    count_kept!(
        "kept.endpoint = part.endpoint and kept.state = part.state
            and kept.last_failed_at is not null and kept.reason_group = part.reason_group"
    ),
    ") as count
    from unnest($1::text[], $3::text[], $4::text[]::uuid[]) with ordinality
        as part (endpoint, state, reason_group, number)
    left join lateral (
        select kept.status, kept.reason
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = part.endpoint and kept.state = part.state
            and kept.last_failed_at is not null
            -- This condition and this order match an index, which finds the row at once, however rare the reason is.
            and kept.reason_group <= part.reason_group
        order by kept.reason_group desc, kept.last_failed_at desc
        limit 1
    ) as example on true
    order by part.number
"
);

/// The failures that were read, grouped by reason.
#[derive(Debug, Serialize)]
pub(super) struct Groups {
    #[serde(rename = "failing")]
    groups: Vec<Group>,
    /// Whether there are more reasons.
    #[serde(rename = "failing_are_cut")]
    are_cut: bool,
}

/// Deliveries that failed for the same reason.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    /// The value of the filter `reason` of lists and actions.
    #[serde(rename = "reason_group")]
    id: String,
    /// The latest reason in the group.
    reason: String,
    status: Option<i16>,
    deliveries: Count,
    since: Option<Timestamp>,
    last_failed: Timestamp,
    parts: Vec<Part>,
}

/// The deliveries of a group with one endpoint and one state.
#[derive(Debug, Serialize)]
struct Part {
    endpoint: String,
    state: String,
    deliveries: Count,
    since: Option<Timestamp>,
    last_failed: Timestamp,
}

/// A reason with one endpoint and one state, and the time of its last failure.
struct Reason {
    id: String,
    endpoint: String,
    state: String,
    last_failed: f64,
}

pub(super) async fn read(
    connection: &mut PgConnection,
    access: &Access,
    endpoints: &[String],
) -> sqlx::Result<Groups> {
    let rows = sqlx::query(REASONS)
        .bind(endpoints)
        .bind(MAX_PARTS as i64)
        .fetch_all(&mut *connection)
        .await?;
    let mut are_cut = rows.len() == MAX_PARTS;
    let mut reasons: BTreeMap<String, Vec<Reason>> = BTreeMap::new();
    for row in &rows {
        let id: String = row.try_get("reason_group")?;
        let reason = Reason {
            endpoint: row.try_get("endpoint")?,
            state: row.try_get("state")?,
            last_failed: row.try_get("last_failed_at")?,
            id: id.clone(),
        };
        reasons.entry(id).or_default().push(reason);
    }
    // The reasons, and the parts of each reason, are sorted latest first.
    let mut reasons: Vec<Vec<Reason>> = reasons.into_values().collect();
    for parts in &mut reasons {
        parts.sort_by(|a, b| b.last_failed.total_cmp(&a.last_failed));
    }
    let latest = |parts: &[Reason]| parts.first().map_or(0.0, |part| part.last_failed);
    reasons.sort_by(|a, b| latest(b).total_cmp(&latest(a)));
    are_cut |= reasons.len() > MAX_GROUPS;
    reasons.truncate(MAX_GROUPS);
    let reasons: Vec<Reason> = reasons.into_iter().flatten().collect();
    let mut groups = groups(connection, access, reasons).await?;
    // Largest first, so that a group stays in its place while somebody looks at the page.
    groups.sort_by_key(|group| std::cmp::Reverse(group.deliveries.number));
    Ok(Groups { groups, are_cut })
}

/// Builds the groups. In `reasons`, all entries of a group must be next to each other.
async fn groups(
    connection: &mut PgConnection,
    access: &Access,
    reasons: Vec<Reason>,
) -> sqlx::Result<Vec<Group>> {
    let column = |of: fn(&Reason) -> &String| -> Vec<&String> { reasons.iter().map(of).collect() };
    let limit = Count::limit(reasons.len());
    let rows = sqlx::query(PARTS)
        .bind(column(|reason| &reason.endpoint))
        .bind(limit)
        .bind(column(|reason| &reason.state))
        .bind(column(|reason| &reason.id))
        .fetch_all(connection)
        .await?;
    let mut groups: Vec<Group> = Vec::new();
    for (row, reason) in rows.iter().zip(reasons) {
        let part = Part {
            endpoint: reason.endpoint,
            state: reason.state,
            deliveries: Count::up_to(limit, row.try_get("count")?),
            since: row.try_get::<Option<f64>, _>("since")?.map(Timestamp),
            last_failed: Timestamp(reason.last_failed),
        };
        if let Some(group) = groups.last_mut().filter(|group| group.id == reason.id) {
            group.add(part);
            continue;
        }
        let example: Option<String> = row.try_get("reason")?;
        groups.push(Group {
            id: reason.id,
            reason: access.reason(example.unwrap_or_default()),
            status: row.try_get("status")?,
            deliveries: part.deliveries,
            since: part.since,
            last_failed: part.last_failed,
            parts: vec![part],
        });
    }
    Ok(groups)
}

impl Groups {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Group {
    fn add(&mut self, part: Part) {
        self.deliveries += part.deliveries;
        self.since = match (self.since, part.since) {
            (Some(known), Some(other)) if known <= other => Some(known),
            (known, other) => other.or(known),
        };
        // The first part is the latest.
        self.parts.push(part);
    }

    /// The link to the group's deliveries. The link names the endpoint if the group has only one endpoint, and the
    /// state if it has only one state.
    fn narrowed(&self, link: Link) -> Link {
        let mut endpoints: Vec<&str> = self.parts.iter().map(|part| &*part.endpoint).collect();
        endpoints.dedup();
        let mut states: Vec<&str> = self.parts.iter().map(|part| &*part.state).collect();
        states.dedup();
        let endpoint = match &*endpoints {
            [endpoint] => Some(*endpoint),
            _ => None,
        };
        let state = match &*states {
            [state] => state,
            _ => "failing",
        };
        link.with_some("endpoint", endpoint)
            .with("state", state)
            .with("reason", &self.id)
    }

    fn can_run(&self) -> bool {
        self.parts.iter().any(|part| part.state != "recorded")
    }
}

pub(super) fn table(
    Groups { groups, are_cut }: &Groups,
    now: Timestamp,
    may_operate: bool,
) -> Markup {
    let mut table = Table::of(groups)
        .class("groups")
        .number("Deliveries", |group| {
            html! {
                a href=(group.narrowed(Link::to("deliveries"))) { (count(group.deliveries)) }
            }
        })
        .styled("reason", "Reason", |group| short(&group.reason, 160))
        .column("Status", |group| status(group.status))
        .column("Endpoints", |group| parts(group, now))
        .column("Since", |group| {
            html! { @if let Some(since) = group.since { (since.with_age(now)) } }
        })
        .column("Last", |group| group.last_failed.with_age(now));
    if may_operate {
        table = table.unnamed("Actions", |group| actions(group, now));
    }
    html! {
        (table)
        @if *are_cut {
            p.muted { "There are more reasons. Only the latest of those that were read are shown." }
        }
    }
}

fn parts(group: &Group, now: Timestamp) -> Markup {
    let part = |part: &Part| html! { (visible(&part.endpoint)) " " (state(&part.state)) };
    match &*group.parts {
        [only] => part(only),
        parts => {
            let mut endpoints: Vec<&str> = parts.iter().map(|part| &*part.endpoint).collect();
            endpoints.sort_unstable();
            endpoints.dedup();
            html! {
                details data-key=(group.id) {
                    summary {
                        @match &*endpoints {
                            [endpoint] => { (visible(endpoint)) }
                            endpoints => { (endpoints.len()) " endpoints" }
                        }
                    }
                    ul.parts {
                        @for each in parts {
                            @let these = Link::to("deliveries")
                                .with("endpoint", &each.endpoint)
                                .with("state", &each.state)
                                .with("reason", &group.id);
                            li {
                                a href=(these) { (count(each.deliveries)) } " " (part(each)) ", last "
                                (each.last_failed.with_age(now))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn actions(group: &Group, now: Timestamp) -> Markup {
    let confirm = |action: &str| {
        group
            .narrowed(Link::to("confirm").with("action", action))
            .with("before", now.0)
    };
    let which = html! { span.hidden { " " (group.deliveries) " with this reason" } };
    html! {
        p.actions {
            @if group.can_run() {
                a.button href=(confirm("retry")) { "Retry…" (which) }
            }
            a.button.danger href=(confirm("discard")) { "Discard…" (which) }
        }
    }
}
