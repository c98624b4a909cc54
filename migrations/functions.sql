-- What is a problem of an endpoint, and when: the thresholds that a release may change. These are no migration: `migrate` runs
-- this file wherever the functions are of an earlier version, and leaves those of a later one. So a version of the crate has
-- to do with the functions of any later one: a column that is there stays, and a new problem is one that it leaves out.
--
-- With each change, the version at the end is the next one. `create or replace` keeps what was granted. It cannot change what
-- a function returns.

-- The event types of endpoints that are new or have stopped, at a time. The settings of an endpoint have its table of types.
--
-- New: it is ignored, no name of the table matches it, and it came first within the last week, and after the endpoint has
-- learned which types come: that is once none came first for a week, or after thirty days. For a day after the table has lost a
-- name, nothing is new: what that name has matched before is not known by its own name. Ten of an endpoint are told by name,
-- the most frequent ones, and `*` stands for the rest.
--
-- Stopped: it has a handler, came on seven days or more, and has not come for more than twice its longest pause until then, or
-- three times if it came in less than a hundred minutes, nor for half an average day, by the clock of the endpoint.
create or replace function idempotent_webhook.event_type_problems(endpoints text[], at timestamptz default now())
    returns table (endpoint text, problem text, event_type text, is_verified boolean)
    language sql stable strict
    begin atomic
        with told as materialized (
            select
                each.endpoint, each.settings, each.ignores_since, each.names_since,
                each.settings ->> 'ignores_other_events' = 'true' as ignores_others,
                each.settings ->> 'event_types_verified' = 'true' as is_verified,
                each.settings ->> 'event_actions' = 'true' as has_actions
            from idempotent_webhook.endpoint_settings as each
            where each.endpoint = any(endpoints)
        ),
        -- The names of each table, read only once and not for each type.
        named as materialized (
            select told.endpoint, told.has_actions, list.is_handled, element #>> '{}' as name
            from told
            cross join lateral (
                values (told.settings -> 'event_types', true), (told.settings -> 'ignored_event_types', false)
            ) as list (names, is_handled)
            cross join lateral jsonb_path_query(list.names, '$[*]') as element
        ),
        -- The name of a type has all actions of it.
        begins as materialized (
            select named.endpoint, left(named.name, -1) as text
            from named
            where named.name like '%*'
            union all
            select named.endpoint, named.name || '.'
            from named
            where named.has_actions
        ),
        seen as materialized (
            select
                each.endpoint, each.event_type, each.first_at, each.days, each.minutes, each.clock, each.longest_pause,
                greatest(min(each.first_at) over (partition by each.endpoint), told.ignores_since) as began_at,
                max(each.clock) over (partition by each.endpoint) as now,
                max(each.days) over (partition by each.endpoint) as all_days,
                told.names_since, told.ignores_others, told.is_verified
            from idempotent_webhook.event_types as each
            join told on told.endpoint = each.endpoint
        ),
        unnamed as materialized (
            select seen.*
            from seen
            where seen.ignores_others
                and not exists (
                    select
                    from named
                    where named.endpoint = seen.endpoint and named.name = seen.event_type
                )
                and not exists (
                    select
                    from begins
                    where begins.endpoint = seen.endpoint and starts_with(seen.event_type, begins.text)
                )
        ),
        learned as materialized (
            select each.endpoint, least(min(each.since) + interval '7 days', min(each.began_at) + interval '30 days') as at
            from (
                select
                    first.endpoint, first.began_at, first.since,
                    lead(first.since) over (partition by first.endpoint order by first.since) as next_at
                from (
                    select unnamed.endpoint, unnamed.began_at, greatest(unnamed.first_at, unnamed.began_at) as since
                    from unnamed
                    union
                    select seen.endpoint, seen.began_at, seen.began_at
                    from seen
                ) as first
            ) as each
            where each.next_at is null or each.next_at > each.since + interval '7 days'
            group by each.endpoint
        ),
        new as (
            select
                unnamed.endpoint, unnamed.event_type, unnamed.is_verified,
                row_number() over (
                    partition by unnamed.endpoint
                    -- By order of magnitude: then the ten seldom change.
                    order by
                        unnamed.event_type = '*', floor(log(unnamed.minutes)) desc, unnamed.first_at, unnamed.event_type
                ) as number
            from unnamed
            join learned on learned.endpoint = unnamed.endpoint
            where unnamed.first_at > event_type_problems.at - interval '7 days'
                and unnamed.first_at > learned.at
                and unnamed.first_at > unnamed.names_since + interval '1 day'
        )
        select distinct
            new.endpoint, 'new event type',
            case when new.number <= 10 then new.event_type else '*' end,
            new.is_verified or new.number > 10 or new.event_type = '*'
        from new
        union all
        select seen.endpoint, 'event type stopped', seen.event_type, true
        from seen
        where seen.days >= 7
            and seen.clock > 0
            -- If nothing comes at all, the clock stands still: the endpoint is silent, or was switched off.
            and seen.now - seen.clock > case when seen.minutes < 100 then 3 else 2 end * seen.longest_pause
            and 2 * (seen.now - seen.clock) * seen.all_days > seen.now
            and exists (
                select
                from named
                where named.endpoint = seen.endpoint and named.name = seen.event_type and named.is_handled
            );
    end;

-- What is wrong with the endpoints: for the log, the hook, the gauges and the dashboard.
--
-- Each look-up reads a few rows of an index, however many are kept: `order by` and `limit` leave the planner no other way.
-- It is strict so that it is not inlined: a Citus would not see that it reads reference tables. Its body is a text, which
-- makes it depend on no table: a Citus takes these dependencies for a circle, and distributes none of the tables.
create or replace function idempotent_webhook.endpoint_problems(endpoints text[])
    returns table (endpoint text, problem text, subject text)
    language sql stable strict
    as $$
        select known.endpoint, found.problem, ''
        from unnest(endpoints) as known (endpoint)
        left join idempotent_webhook.kept_endpoints as state on state.endpoint = known.endpoint
        cross join lateral (
            values
                ('failing', exists (
                    select
                    from (values ('due'), ('dead'), ('recorded')) as waiting (state)
                    cross join lateral (
                        select
                        from idempotent_webhook.kept_deliveries as kept
                        where kept.endpoint = known.endpoint
                            and kept.state = waiting.state
                            and kept.last_failed_at is not null
                        order by kept.last_failed_at
                        limit 1
                    ) as failed
                )),
                ('probing', state.probe_at is not null),
                ('unreached', (
                    select true
                    from idempotent_webhook.kept_deliveries as kept
                    where kept.endpoint = known.endpoint
                        and kept.state = 'due'
                        and kept.unreached_at is not null
                    order by kept.unreached_at
                    limit 1
                )),
                ('unserved', state.paused_at is null
                    and coalesce(state.served_at < now() - interval '2 minutes', true)
                    and (
                        select true
                        from idempotent_webhook.kept_deliveries as kept
                        where kept.endpoint = known.endpoint and kept.state = 'due'
                        order by kept.next_attempt_at
                        limit 1
                    )
                ),
                ('silent', (
                    select case when told.settings ->> 'expected_every_seconds' is not null then (
                        select last.last_at
                        from idempotent_webhook.activity as last
                        where last.endpoint = known.endpoint
                            and last.source = 'request'
                            and last.outcome not in ('handshake', 'rejected')
                        order by last.hour desc, last.last_at desc
                        limit 1
                    ) end < now() - make_interval(
                        secs => (told.settings ->> 'expected_every_seconds')::float8
                    )
                    from idempotent_webhook.endpoint_settings as told
                    where told.endpoint = known.endpoint
                )),
                -- By the present expectation: once that is corrected, the problem is over.
                ('other version', (
                    select case when jsonb_typeof(told.settings -> 'expected_versions') = 'array' then exists (
                        select
                        from idempotent_webhook.activity as other
                        where other.endpoint = known.endpoint
                            and other.hour > now() - interval '25 hours'
                            and other.source = 'version'
                            and other.last_at > now() - interval '1 day'
                            and not (told.settings -> 'expected_versions') ? other.outcome
                    ) end
                    from idempotent_webhook.endpoint_settings as told
                    where told.endpoint = known.endpoint
                )),
                ('not reconciled', exists (
                    select
                    from idempotent_webhook.reconciliations as list
                    left join idempotent_webhook.turns as turn
                        on turn.task = 'reconciliation'
                            and turn.endpoint = list.endpoint
                            and turn.address = list.path
                            and turn.source = list.source
                    where list.endpoint = known.endpoint
                        and (list.failure is not null or turn.next_at < now() - interval '1 hour')
                )),
                -- Not for an address that no process compares any more.
                ('subscription differs', exists (
                    select
                    from idempotent_webhook.subscriptions as compared
                    join idempotent_webhook.turns as turn using (endpoint, address, source)
                    where compared.endpoint = known.endpoint
                        and cardinality(compared.differences) > 0
                        and turn.task = 'subscription'
                        and turn.next_at > now() - interval '1 hour'
                )),
                -- If an API fails for some hours, that is up to the provider. A wrong key stays wrong.
                ('not compared', exists (
                    select
                    from idempotent_webhook.subscriptions as compared
                    join idempotent_webhook.turns as turn using (endpoint, address, source)
                    where compared.endpoint = known.endpoint
                        and compared.failed_at < now() - interval '1 day'
                        and turn.task = 'subscription'
                        and turn.next_at > now() - interval '1 hour'
                ))
        ) as found (problem, is_there)
        where found.is_there
        union all
        -- A process says so each half a minute. One that goes on says nothing, since another one may have stopped.
        select state.endpoint, 'stalled', task
        from idempotent_webhook.kept_endpoints as state
        cross join lateral unnest(state.stalled) as stalled (task)
        where state.endpoint = any (endpoints) and state.stalled_at > now() - interval '90 seconds'
        union all
        select
            types.endpoint, types.problem,
            types.event_type || case when types.is_verified then '' else ' (unverified)' end
        from idempotent_webhook.event_type_problems(endpoints) as types;
    $$;

comment on function idempotent_webhook.endpoint_problems(text[]) is 'version 1';
