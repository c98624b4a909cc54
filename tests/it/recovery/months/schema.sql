-- Simulates an endpoint over months. A test describes the months in these tables, and `months.run` simulates them.
-- Times are in days since the start (`months.begin`).
create schema months;

-- The event types that the provider sends.
create table months.types (
    name text not null,
    -- The number of events on a working day.
    per_day float8 not null,
    pattern text not null,
    since float8 not null default 0,
    until float8 not null default 1000
);

-- Times in which fewer events come, or none.
create table months.pauses (
    since float8 not null,
    until float8 not null,
    -- The patterns of the types that are affected.
    patterns text[] not null,
    -- The share of the events that still comes.
    share float8 not null
);

-- The versions of the application that run, and the share of the events that each of them gets.
create table months.versions (
    version text not null,
    since float8 not null,
    until float8 not null default 1000,
    share float8 not null default 1,
    handled text[] not null,
    ignored text[] not null default '{}'
);

-- The problems that should be found, and the time at which each of them starts.
create table months.expected (
    problem text not null,
    name text not null,
    since float8 not null,
    -- If the problem is found later than this many days after `since`, it counts as missed.
    within float8 not null
);

-- The problems that were found: when each of them started, and when it was over.
create table months.found (
    problem text not null,
    name text not null,
    since float8 not null,
    until float8
);

create function months.begin() returns timestamptz language sql immutable return timestamptz '2026-01-05 00:00:00+00';

create function months.weight(pattern text, at timestamptz) returns float8 language sql immutable as $$
    select case pattern
        when 'always' then 1
        -- Fewer events at night.
        when 'shop' then case when extract(hour from at at time zone 'UTC') < 7 then 0.2 else 1.33 end
        -- Most events at the start of a month.
        when 'billing' then case when extract(day from at at time zone 'UTC') <= 2 then 4 else 0.8 end
            * case when extract(hour from at at time zone 'UTC') < 7 then 0.2 else 1.33 end
        -- Most events from eight to six on working days.
        when 'people' then case
            when extract(isodow from at at time zone 'UTC') > 5 then 0.02
            when extract(hour from at at time zone 'UTC') between 8 and 17 then 2.4
            else 0.02
        end
    end
$$;

-- The events of each minute, by the version of the application that gets them.
create table months.events (at timestamptz not null, version text not null, names text[] not null, of_table bool[] not null);

create function months.fill(days int) returns void language plpgsql as $$
begin
    perform setseed(0.5);
    insert into months.events
    with tried as materialized (
        select name, pattern, since + random() * (least(until, days) - since) as day, random() as choice
        from months.types
        -- `months.weight` returns at most six.
        cross join lateral generate_series(1, (6 * per_day * (least(until, days) - since))::int)
    ),
    sent as materialized (
        select distinct on (minute, name) minute, minute / 1440.0 as day, name, choice
        from tried
        cross join lateral (select floor(tried.day * 1440) as minute) as of_minute
        where random() * 6 < months.weight(pattern, months.begin() + minute * interval '1 minute') * (
            select coalesce(min(share), 1)
            from months.pauses
            where tried.day >= pauses.since and tried.day < pauses.until and pattern = any(patterns)
        )
    ),
    got as (
        select months.begin() + minute * interval '1 minute' as at, sent.name, one.version, one.handled, one.ignored
        from sent
        cross join lateral (
            select version, handled, ignored
            from (
                select versions.*, sum(share) over (order by version desc) as up_to
                from months.versions
                where sent.day >= since and sent.day < until
            ) as running
            where choice < up_to
            order by up_to
            limit 1
        ) as one
    )
    select at, version, array_agg(name), array_agg(name = any(handled))
    from got
    where name <> all(ignored)
    group by at, version
    order by at, version;
end $$;

create function months.look(now timestamptz, day float8) returns void language plpgsql as $$
begin
    with there as materialized (
        select problem, event_type as name from idempotent_webhook.event_type_problems(array['test'], now)
    ),
    ended as (
        update months.found set until = day
        where until is null and (problem, name) not in (select problem, name from there)
    )
    insert into months.found (problem, name, since)
    select problem, name, day from there
    where not exists (
        select from months.found
        where found.problem = there.problem and found.name = there.name and found.until is null
    );
end $$;

-- Simulates this number of days. Looks for problems every two hours.
create function months.run(days int) returns void language plpgsql as $$
declare
    hour int := 0;
    event record;
    one record;
begin
    for event in
        select at, version, names, of_table from months.events
        union all
        select months.begin() + days * interval '1 day', null, null, null
        order by at, version
    loop
        while months.begin() + hour * interval '1 hour' <= event.at loop
            for one in
                select version, jsonb_build_object(
                    'event_types', to_jsonb(handled), 'ignored_event_types', to_jsonb(ignored), 'ignores_other_events', true
                ) as settings
                from months.versions
                where hour / 24.0 >= since and hour / 24.0 < until
                -- The older version reports its table of types last.
                order by version desc
            loop
                perform months.tell('{test}', array[one.version], array[one.settings::text], months.begin() + hour * interval '1 hour');
            end loop;
            perform months.trim('test', 1000);
            perform months.look(months.begin() + hour * interval '1 hour', hour / 24.0);
            hour := hour + 2;
        end loop;
        if event.names is not null then
            perform months.see('test', event.names, event.of_table, 1000, event.at);
        end if;
    end loop;
end $$;

-- Judges each problem: it was found, it was missed because it was found too late or not at all, or it is false because
-- nothing like it was expected. A type that comes at least ten times a day is frequent.
create view months.judged as
    select
        'false' as what, found.problem, found.name, found.since,
        coalesce((select max(per_day) from months.types where types.name = found.name), 0) >= 10 as is_frequent,
        null::float8 as after
    from months.found
    where not exists (
        select from months.expected
        where expected.problem = found.problem and expected.name = found.name and expected.since <= found.since
    )
    union all
    select
        case when after <= within then 'found' else 'missed' end, problem, name, since,
        coalesce((select max(per_day) from months.types where types.name = expected.name), 0) >= 10, after
    from months.expected
    cross join lateral (
        select min(found.since) - expected.since as after
        from months.found
        where found.problem = expected.problem and found.name = expected.name and found.since >= expected.since
    ) as first;
