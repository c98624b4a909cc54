//! The endpoints, with the state and the numbers of each.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::Access;
use super::activity::{self, Hour};
use super::endpoint_state::{State, state};
use super::html::Timestamp;
use super::rows::{Count, count_kept};

/// Whether a turn (the next scheduled round of a task) has been due for so long that no process seems to run it.
macro_rules! is_late {
    () => {
        "turn.next_at < now() - interval '1 hour'"
    };
}
pub(super) use is_late;

/// One row for each endpoint in `$1`. Numbers are counted up to one more than `$2`.
const ENDPOINTS: &str = concat!(
    "
    select
        known.endpoint,
        state.paused_at is not null as paused,
        coalesce(
            (
                select array_agg(problem)
                from idempotent_webhook.endpoint_problems(array[known.endpoint])
            ),
            '{}'
        ) as problems,
        waiting.due, waiting.unreached,
        (",
    count_kept!(
        "kept.endpoint = known.endpoint and kept.state = 'dead' and kept.last_failed_at is not null"
    ),
    ") as dead,
        (",
    count_kept!(
        "kept.endpoint = known.endpoint and kept.state = 'recorded'
            and kept.last_failed_at is not null"
    ),
    ") as recorded,
        (
            select extract(epoch from now() - kept.next_attempt_at)::float8
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = 'due'
            order by kept.next_attempt_at
            limit 1
        ) as overdue,
        (
            select differences[1] || case cardinality(differences)
                when 1 then '' else ', and ' || cardinality(differences) - 1 || ' more' end
            from idempotent_webhook.subscriptions
            join idempotent_webhook.turns as turn using (endpoint, address, source)
            where endpoint = known.endpoint
                and cardinality(differences) > 0
                and turn.task = 'subscription'
                and turn.next_at > now() - interval '1 hour'
            order by address, source
            limit 1
        ) as difference,
        (
            select source || ': ' || left(failure, 300)
            from idempotent_webhook.subscriptions
            join idempotent_webhook.turns as turn using (endpoint, address, source)
            where endpoint = known.endpoint
                and failed_at < now() - interval '1 day'
                and turn.task = 'subscription'
                and turn.next_at > now() - interval '1 hour'
            order by address, source
            limit 1
        ) as not_compared,
        list.source as list, list.failure as list_failure,
        extract(epoch from now() - last.at)::float8 as silence, told.every
    from unnest($1::text[]) as known (endpoint)
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    left join lateral (
        select (settings ->> 'expected_every_seconds')::float8 as every
        from idempotent_webhook.endpoint_settings
        where endpoint_settings.endpoint = known.endpoint
    ) as told on true
    left join lateral (
        select last_at as at
        from idempotent_webhook.activity
        where activity.endpoint = known.endpoint and told.every is not null
            and source = 'request' and outcome not in ('handshake', 'rejected')
        order by hour desc, last_at desc
        limit 1
    ) as last on true
    -- If the last attempt at a delivery reached no layer, recovery tries again each minute, so the delivery is among
    -- the first due ones.
    cross join lateral (
        select count(*) as due, count(unreached_at) as unreached
        from (
            select kept.unreached_at
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = 'due'
            order by kept.next_attempt_at
            limit $2 + 1
        ) as counted
    ) as waiting
    left join lateral (
        select list.source, left(list.failure, 300) as failure
        from idempotent_webhook.reconciliations as list
        left join idempotent_webhook.turns as turn
            on turn.task = 'reconciliation'
                and turn.endpoint = list.endpoint
                and turn.address = list.path
                and turn.source = list.source
        where list.endpoint = known.endpoint and (list.failure is not null or ",
    is_late!(),
    ")
        order by list.failure is null, list.source, list.path
        limit 1
    ) as list on true
    order by known.endpoint
"
);

/// The last rejection of each endpoint. Requests with a method that is not allowed do not count, because browsers and
/// scanners send them.
const REJECTED: &str = "
    select endpoint, extract(epoch from max(last_at))::float8 as at
    from idempotent_webhook.rejections
    where endpoint = any($1) and hour > now() - interval '24 hours' and cause <> 'method_not_allowed'
    group by endpoint
";

/// The last success of endpoints that had no success in the last hours.
const LAST_SUCCESS: &str = "
    select known.endpoint, extract(epoch from last.last_at)::float8 as at
    from unnest($1::text[]) as known (endpoint)
    cross join lateral (
        select last_at
        from idempotent_webhook.activity
        where activity.endpoint = known.endpoint
            and outcome = 'processed' and source not in ('ignored', 'version')
        order by hour desc, last_at desc
        limit 1
    ) as last
";

/// An endpoint, and what it did over the last 24 hours.
#[derive(Debug, Serialize)]
pub(super) struct Endpoint {
    #[serde(rename = "endpoint")]
    pub(super) name: String,
    pub(super) state: State,
    /// Whether an operator has paused the endpoint. `state` may show another problem.
    #[serde(rename = "paused")]
    pub(super) is_paused: bool,
    #[serde(rename = "probing")]
    pub(super) is_probing: bool,
    #[serde(skip)]
    pub(super) is_stalled: bool,
    /// Whether the endpoint is not reconciled. `state` may show a worse problem.
    #[serde(rename = "not_reconciled")]
    pub(super) is_unreconciled: bool,
    #[serde(rename = "event_type_stopped")]
    pub(super) has_type_stopped: bool,
    #[serde(rename = "new_event_type")]
    pub(super) has_new_type: bool,
    #[serde(rename = "other_version")]
    pub(super) has_other_version: bool,
    /// Why one of the provider's event lists is not reconciled. It is not serialized, because programs get all lists
    /// from `api/endpoint`.
    #[serde(skip)]
    pub(super) why_unreconciled: Option<String>,
    /// How the provider's subscription differs from what the layer expects.
    #[serde(rename = "subscription_differs")]
    pub(super) difference: Option<String>,
    /// Why the provider's subscription could not be read, if this has failed for a day.
    #[serde(rename = "not_compared")]
    pub(super) why_uncompared: Option<String>,
    /// The seconds since the last authentic request, and the interval in seconds at which requests are expected. Set
    /// only if the silence is too long.
    #[serde(skip)]
    pub(super) silence: Option<(f64, f64)>,
    pub(super) due: Count,
    /// How many due deliveries did not reach a layer of the endpoint in their last attempt.
    pub(super) unreached: Count,
    pub(super) dead: Count,
    pub(super) recorded: Count,
    /// How long the oldest due delivery has been due, in seconds.
    #[serde(rename = "oldest_due_seconds")]
    pub(super) overdue: Option<f64>,
    pub(super) last_success: Option<Timestamp>,
    pub(super) hours: Vec<Hour>,
}

impl Endpoint {
    /// Other problems that the state does not show.
    pub(super) fn also(&self) -> impl Iterator<Item = State> {
        [
            (self.is_paused, State::Paused),
            (self.is_probing, State::Probing),
            (self.is_stalled, State::Stalled),
            (self.is_unreconciled, State::Unreconciled),
            (self.has_type_stopped, State::TypeStopped),
            (self.has_new_type, State::NewType),
            (self.has_other_version, State::OtherVersion),
            (self.difference.is_some(), State::Differing),
            (self.why_uncompared.is_some(), State::Uncompared),
            (self.silence.is_some(), State::Silent),
        ]
        .into_iter()
        .filter_map(|(is_so, state)| is_so.then_some(state))
        .filter(|state| *state != self.state)
    }
}

/// Reads the endpoints with these names, worst first.
pub(super) async fn read(
    connection: &mut PgConnection,
    access: &Access,
    names: &[String],
    beginnings: &[i64],
) -> sqlx::Result<Vec<Endpoint>> {
    let mut recent = activity::by_hour(&mut *connection, names, beginnings).await?;
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let rejected = times(&mut *connection, REJECTED, &all).await?;
    let has_none = |name: &&str| {
        let recent = recent.get(*name);
        recent.is_none_or(|recent| recent.processed.is_none())
    };
    let quiet: Vec<&str> = all.into_iter().filter(has_none).collect();
    let long_ago = times(&mut *connection, LAST_SUCCESS, &quiet).await?;
    let limit = Count::limit(3 * names.len());
    let rows = sqlx::query(ENDPOINTS).bind(names).bind(limit);
    let rows = rows.fetch_all(connection).await?;
    let read = |row: &PgRow| {
        let name: String = row.try_get("endpoint")?;
        let number =
            |column| -> sqlx::Result<Count> { Ok(Count::up_to(limit, row.try_get(column)?)) };
        let problems: Vec<String> = row.try_get("problems")?;
        let problems: Vec<&str> = problems.iter().map(String::as_str).collect();
        let recent = recent.remove(&name).unwrap_or_default();
        let last_success = recent.processed.or(long_ago.get(&name).copied());
        let overdue: Option<f64> = row.try_get("overdue")?;
        Ok(Endpoint {
            state: state(row, &problems, &recent, rejected.get(&name).copied())?,
            is_paused: row.try_get("paused")?,
            is_probing: problems.contains(&"probing"),
            is_stalled: problems.contains(&"stalled"),
            is_unreconciled: problems.contains(&"not reconciled"),
            has_type_stopped: problems.contains(&"event type stopped"),
            has_new_type: problems.contains(&"new event type"),
            has_other_version: problems.contains(&"other version"),
            why_unreconciled: why_unreconciled(row, access)?,
            difference: row.try_get("difference")?,
            why_uncompared: row
                .try_get::<Option<_>, _>("not_compared")?
                .map(|failure| access.reason(failure)),
            silence: silence(row)?.filter(|_| problems.contains(&"silent")),
            due: number("due")?,
            unreached: number("unreached")?,
            dead: number("dead")?,
            recorded: number("recorded")?,
            overdue: overdue.filter(|overdue| *overdue >= 1.0),
            last_success: last_success.map(Timestamp),
            hours: recent.hours,
            name,
        })
    };
    let mut endpoints: Vec<Endpoint> = rows.iter().map(read).collect::<sqlx::Result<_>>()?;
    // The sort is stable: endpoints in the same state stay in the order of their names.
    endpoints.sort_by_key(|endpoint| endpoint.state);
    Ok(endpoints)
}

/// Reads one time for each endpoint, in Unix seconds.
async fn times(
    connection: &mut PgConnection,
    sql: &'static str,
    names: &[&str],
) -> sqlx::Result<BTreeMap<String, f64>> {
    let rows = sqlx::query(sql).bind(names).fetch_all(connection).await?;
    let time = |row: &PgRow| Ok((row.try_get("endpoint")?, row.try_get("at")?));
    rows.iter().map(time).collect()
}

fn why_unreconciled(row: &PgRow, access: &Access) -> sqlx::Result<Option<String>> {
    let list: Option<String> = row.try_get("list")?;
    let failure: Option<String> = row.try_get("list_failure")?;
    Ok(list.map(|list| match failure {
        Some(failure) => format!("{list}: {}", access.reason(failure)),
        None => format!("{list}: no process has started a round for more than an hour."),
    }))
}

fn silence(row: &PgRow) -> sqlx::Result<Option<(f64, f64)>> {
    let silence: Option<f64> = row.try_get("silence")?;
    let every: Option<f64> = row.try_get("every")?;
    Ok(silence.zip(every))
}
