//! The statements that write the activity of layers.

use std::collections::BTreeMap;

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::Told;
use super::flush::Taken;
use super::numbers::{Numbers, OfTable};

type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Adds counts. The rows are in the order of the key, so that two processes do not deadlock.
const ADD_COUNTS: &str = "
    insert into idempotent_webhook.activity as known
        (endpoint, hour, source, outcome, version, count, last_at)
    select endpoint, date_trunc('hour', now(), 'UTC'), source, outcome, version, count, now()
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int8[])
        as new (endpoint, version, source, outcome, count)
    order by endpoint, source, outcome, version
    on conflict (endpoint, hour, source, outcome, version) do update
    set count = known.count + excluded.count, last_at = excluded.last_at
";

/// Adds rejections. As in [`ADD_COUNTS`], the rows are in the order of the key.
const ADD_REJECTIONS: &str = "
    insert into idempotent_webhook.rejections as known
        (endpoint, hour, cause, count, last_at, reason)
    select endpoint, date_trunc('hour', now(), 'UTC'), cause, count, now(), reason
    from unnest($1::text[], $2::text[], $3::int8[], $4::text[]) as new (endpoint, cause, count, reason)
    order by endpoint, cause
    on conflict (endpoint, hour, cause) do update
    set count = known.count + excluded.count,
        last_at = excluded.last_at,
        reason = excluded.reason
";

/// Records which event types arrived. A type in the layer's table always has a row. Any other type gets a row only
/// while the endpoint has fewer than `$4` rows that [`TRIM_TYPES`] does not delete. After that, it is recorded as `*`.
/// The limit of a process (`numbers.rs`) is not enough, because many processes may run one after another.
///
/// A row is written at most once a minute.
///
/// On Citus, the table is a reference table. There, the update of an existing row may call only immutable functions, so
/// it does not call `now()`. The rows that the insert looks up must be materialized.
const ADD_TYPES: &str = "
    with there as materialized (
        select event_type, last_at, days, is_handled, clock
        from idempotent_webhook.event_types
        where endpoint = $1
    ),
    endpoint as materialized (
        select
            count(*) filter (where is_handled or days > 1) as lasting,
            coalesce(max(clock), 0) + case
                -- Ignores times in the future, which were written before the clock of Postgres was set back.
                when date_trunc('minute', max(last_at) filter (where is_handled and last_at <= now()))
                    = date_trunc('minute', now()) then 0
                else 1
            end as clock
        from there
    ),
    seen as (
        select name, of_table, of_table or exists (
            select from there where there.event_type = seen.name
        ) as has_room
        from unnest($2::text[], $3::bool[]) as seen (name, of_table)
    ),
    numbered as (
        select name, of_table, has_room, row_number() over (partition by has_room order by name) as number
        from seen
    )
    insert into idempotent_webhook.event_types as known (endpoint, event_type, first_at, last_at, is_handled, clock)
    select distinct
        $1,
        case when has_room or number <= $4 - lasting then name else '*' end as event_type,
        now(), now(), of_table, case when of_table then clock else 0 end
    from numbered
    cross join endpoint
    order by event_type
    on conflict (endpoint, event_type) do update
    set first_at = case
            when known.event_type = '*' and excluded.last_at - known.last_at > interval '7 days' then excluded.first_at
            else known.first_at
        end,
        last_at = excluded.last_at,
        days = known.days + (
            (excluded.last_at at time zone 'UTC')::date <> (known.last_at at time zone 'UTC')::date
        )::integer,
        minutes = known.minutes + 1,
        is_handled = excluded.is_handled,
        clock = case when excluded.is_handled then greatest(known.clock, excluded.clock) else 0 end,
        longest_pause = greatest(
            known.longest_pause, case when known.clock > 0 then excluded.clock - known.clock end
        )
    where excluded.last_at - known.last_at not between interval '0' and interval '1 minute'
";

/// While there are more than `$2` event types, deletes types that arrived on only one day, oldest first. So after a
/// flood of made-up types, the latest of them stay, and so does a type that arrives every day.
const TRIM_TYPES: &str = "
    with there as materialized (
        select event_type, last_at, not is_handled and days = 1 and event_type <> '*' as gives_way
        from idempotent_webhook.event_types
        where endpoint = $1
    )
    delete from idempotent_webhook.event_types
    where endpoint = $1 and event_type = any (array(
        select event_type
        from there
        where gives_way
        order by last_at, event_type desc
        limit greatest((select count(*) from there) - $2, 0)
    ))
";

/// The maximum number of event types of an endpoint that are stored by name, if a sender may have made them up.
const MAX_TYPES: i64 = 1000;

/// Other endpoints of the same provider, starting with the endpoint whose settings were written last.
const OF_ITS_PROVIDER: &str = "
    select other.endpoint
    from idempotent_webhook.endpoint_settings as own
    join idempotent_webhook.endpoint_settings as other
        on other.settings ->> 'provider' = own.settings ->> 'provider'
    where own.endpoint = $1 and other.endpoint <> all($2)
    order by other.told_at desc
    limit 3
";

/// Writes the settings of endpoints. Each returned row says whether its endpoint was unknown. As in [`ADD_TYPES`], the
/// update does not call `now()`.
///
/// If several versions of the application run side by side, the newest version writes the row. An older version writes
/// it again only once the newer version has reported nothing for two hours.
const TELL_SETTINGS: &str = "
    insert into idempotent_webhook.endpoint_settings as known (endpoint, version, settings, told_at, ignores_since, names_since)
    select endpoint, version, settings::jsonb, now(), now(), now()
    from unnest($1::text[], $2::text[], $3::text[]) as new (endpoint, version, settings)
    order by endpoint
    on conflict (endpoint) do update
    set version = excluded.version,
        former_versions = case
            when known.version = excluded.version then known.former_versions
            else (known.version || known.former_versions)[:20]
        end,
        settings = excluded.settings,
        told_at = excluded.told_at,
        ignores_since = case
            when known.settings -> 'ignores_other_events' is distinct from excluded.settings -> 'ignores_other_events'
                then excluded.told_at
            else known.ignores_since
        end,
        names_since = case
            when coalesce(nullif(known.settings -> 'event_types', 'null'), '[]')
                    || coalesce(nullif(known.settings -> 'ignored_event_types', 'null'), '[]')
                <@ (
                    coalesce(nullif(excluded.settings -> 'event_types', 'null'), '[]')
                        || coalesce(nullif(excluded.settings -> 'ignored_event_types', 'null'), '[]')
                )
                then known.names_since
            else excluded.told_at
        end
    where known.version = excluded.version
        or excluded.version <> all (known.former_versions)
        -- The newer version has reported nothing for two hours, or the clock was changed.
        or excluded.told_at - known.told_at not between interval '-1 minute' and interval '2 hours'
    -- `xmax` is zero in a row that was inserted.
    returning endpoint, xmax = 0 as is_new
";

/// The counts of layers. Each row occurs once, with the sum, because two layers may have the same endpoint.
#[derive(Default)]
pub(super) struct Counts<'a> {
    endpoints: Vec<&'a str>,
    versions: Vec<&'a str>,
    sources: Vec<&'static str>,
    outcomes: Vec<&'a str>,
    counts: Vec<i64>,
}

impl<'a> Counts<'a> {
    pub(super) fn of(taken: &'a [Taken<'_>]) -> Self {
        let mut sums = BTreeMap::<_, u64>::new();
        for each in taken {
            for (source, outcome, count) in each.numbers.counts() {
                let key = (each.endpoint(), source.as_str(), outcome, each.version());
                *sums.entry(key).or_default() += count;
            }
        }
        let mut counts = Self::default();
        for ((endpoint, source, outcome, version), count) in sums {
            counts.endpoints.push(endpoint);
            counts.versions.push(version);
            counts.sources.push(source);
            counts.outcomes.push(outcome);
            counts.counts.push(as_int8(count));
        }
        counts
    }

    /// The statement that adds the counts, if there are any.
    pub(super) fn add(&self) -> Option<Statement<'_>> {
        (!self.counts.is_empty()).then(|| {
            sqlx::query(ADD_COUNTS)
                .bind(&self.endpoints)
                .bind(&self.versions)
                .bind(&self.sources)
                .bind(&self.outcomes)
                .bind(&self.counts)
        })
    }
}

/// The rejections of layers. As in [`Counts`], each row occurs once.
#[derive(Default)]
pub(super) struct Rejections<'a> {
    endpoints: Vec<&'a str>,
    causes: Vec<&'static str>,
    counts: Vec<i64>,
    reasons: Vec<&'a str>,
}

impl<'a> Rejections<'a> {
    pub(super) fn of(taken: &'a [Taken<'_>]) -> Self {
        let mut sums = BTreeMap::<_, (u64, &str)>::new();
        for each in taken {
            for (cause, rejected) in each.numbers.rejections() {
                let sum = sums.entry((each.endpoint(), cause)).or_default();
                *sum = (sum.0 + rejected.count, &rejected.reason);
            }
        }
        let mut rejections = Self::default();
        for ((endpoint, cause), (count, reason)) in sums {
            rejections.endpoints.push(endpoint);
            rejections.causes.push(cause);
            rejections.counts.push(as_int8(count));
            rejections.reasons.push(reason);
        }
        rejections
    }

    /// The statement that adds the rejections, if there are any.
    pub(super) fn add(&self) -> Option<Statement<'_>> {
        (!self.counts.is_empty()).then(|| {
            sqlx::query(ADD_REJECTIONS)
                .bind(&self.endpoints)
                .bind(&self.causes)
                .bind(&self.counts)
                .bind(&self.reasons)
        })
    }
}

/// The settings to report, once for each endpoint.
#[derive(Default)]
pub(super) struct Settings<'a> {
    endpoints: Vec<&'a str>,
    versions: Vec<&'a str>,
    settings: Vec<&'a str>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(taken: &[Taken<'a>]) -> Self {
        let told = taken.iter();
        let told: BTreeMap<&'a str, &'a Told> = told
            .filter_map(|each| Some((each.endpoint(), each.told()?)))
            .collect();
        let mut settings = Self::default();
        for (endpoint, told) in told {
            settings.endpoints.push(endpoint);
            settings.versions.push(&told.version);
            settings.settings.push(&told.settings);
        }
        settings
    }

    /// The statement that reports the settings, if there are any.
    pub(super) fn tell(&self) -> Option<Statement<'_>> {
        (!self.endpoints.is_empty()).then(|| {
            sqlx::query(TELL_SETTINGS)
                .bind(&self.endpoints)
                .bind(&self.versions)
                .bind(&self.settings)
        })
    }
}

/// Records which event types arrived, if any did.
pub(super) fn add_types<'q>(endpoint: &'q str, numbers: &'q Numbers) -> Option<Statement<'q>> {
    let (names, of_table): (Vec<_>, Vec<_>) = numbers
        .seen()
        .map(|(name, of_table)| (name, of_table == OfTable::Yes))
        .unzip();
    (!names.is_empty()).then(|| {
        sqlx::query(ADD_TYPES)
            .bind(endpoint)
            .bind(names)
            .bind(of_table)
            .bind(MAX_TYPES)
    })
}

/// Deletes event types over the limit: see [`TRIM_TYPES`].
pub(super) fn trim_types(endpoint: &str) -> Statement<'_> {
    sqlx::query(TRIM_TYPES).bind(endpoint).bind(MAX_TYPES)
}

/// The endpoints of the same provider that no layer of this process serves.
pub(super) fn of_its_provider<'q>(endpoint: &'q str, served: &'q [String]) -> Statement<'q> {
    sqlx::query(OF_ITS_PROVIDER).bind(endpoint).bind(served)
}

fn as_int8(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
