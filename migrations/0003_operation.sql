-- What came in and with which outcome: a counter for each endpoint, hour, outcome and version, to which
-- each process adds its numbers every few seconds.
create table idempotent_webhook.activity (
    endpoint text collate "C" not null,
    -- In UTC.
    hour timestamptz not null,
    -- `request`: a request of the provider. `recovery`: an attempt at a kept delivery. `handler`: a call of
    -- the handler. `reconciliation`: a delivery that never came, with the outcome `missed`. `ignored`: an event
    -- that was ignored. `secret`: an authentic delivery, where there are several secrets.
    -- `version`: an authentic delivery whose payload has another version than is expected.
    source text collate "C" not null,
    -- Of a handler: the longest time of a bucket in milliseconds, `1` to `50000`, or `inf`. Of an event that was
    -- ignored: its type, or `*`. Of a secret: its place, `0` to `9`, or `*`.
    -- Of a version: its name, or `*`.
    outcome text collate "C" not null,
    -- That of the application, or an empty text.
    version text collate "C" not null default '',
    count bigint not null,
    last_at timestamptz not null,
    primary key (endpoint, hour, source, outcome, version)
-- With room for updates in place: a row is updated for an hour.
) with (fillfactor = 50);

-- When events of each type came, for endpoints with a table of types: what is new, and what has stopped.
create table idempotent_webhook.event_types (
    endpoint text collate "C" not null,
    -- A name of the table that has a handler, or the type of an event that is ignored and that no name matches. `*` stands
    -- for the types beyond a bound.
    event_type text collate "C" not null,
    -- Of `*`: since it came for the first time in a week.
    first_at timestamptz not null default now(),
    -- To the minute.
    last_at timestamptz not null default now(),
    -- On how many days it came, in UTC, and in how many minutes.
    days integer not null default 1,
    minutes integer not null default 1,
    -- Whether it had a handler when it came last.
    is_handled boolean not null default false,
    -- When it came last, by the clock of the endpoint: that goes on with each minute in which a type came that has a handler, so
    -- that nights, weekends and outages of the whole endpoint take no time. 0 if it had no handler.
    clock integer not null default 0,
    -- The longest time between two of them, by that clock.
    longest_pause integer not null default 0,
    primary key (endpoint, event_type)
-- With room for updates in place: a row is updated each minute.
) with (fillfactor = 50);

-- Why requests were rejected, likewise.
create table idempotent_webhook.rejections (
    endpoint text collate "C" not null,
    -- In UTC.
    hour timestamptz not null,
    -- One of a few names, as in the metrics.
    cause text collate "C" not null,
    count bigint not null,
    last_at timestamptz not null,
    -- Of the last one. Nothing in it was chosen by a sender that is not authentic.
    reason text not null,
    primary key (endpoint, hour, cause)
) with (fillfactor = 50);

-- The settings of each endpoint's layer, without secrets: of the newest version of the application, as its last process has
-- reported them.
create table idempotent_webhook.endpoint_settings (
    endpoint text collate "C" not null primary key,
    -- That of the application, or an empty text.
    version text collate "C" not null default '',
    settings jsonb not null,
    told_at timestamptz not null,
    -- The versions that had the row before, the last one first.
    former_versions text[] collate "C" not null default '{}',
    -- Since when the layer ignores what its table has no name for.
    ignores_since timestamptz not null default now(),
    -- Since when the table lacks a name that it had.
    names_since timestamptz not null default now()
);

-- Up to when each list of a provider is reconciled with what is processed, and the round under way. When the next one is due
-- is in `turns`.
create table idempotent_webhook.reconciliations (
    endpoint text collate "C" not null,
    -- The path of the route.
    path text collate "C" not null,
    -- The name of the list.
    source text collate "C" not null,
    -- Events before this time are left alone: what was processed of them is not recorded.
    begins_at timestamptz not null,
    -- All events before this time are reconciled.
    reconciled_until timestamptz,
    -- The round under way, if any: the times of the events that it looks at, and the page to go on with.
    round_since timestamptz,
    round_until timestamptz,
    cursor text,
    -- Events of this time were too old for a round: nothing has looked at them.
    gap_since timestamptz,
    gap_until timestamptz,
    missed bigint not null default 0,
    last_missed_at timestamptz,
    -- Why the round is not complete, or what it left out, or the gap.
    failure text,
    -- Since when there is such a reason.
    failed_at timestamptz,
    primary key (endpoint, path, source),
    check ((round_since is null) = (round_until is null)),
    check ((gap_since is null) = (gap_until is null))
);

-- What the provider's subscription of an endpoint lacks, as the last comparison has found it. When the next one is due is in
-- `turns`: if it is overdue by an hour, no process compares it any more.
create table idempotent_webhook.subscriptions (
    endpoint text collate "C" not null,
    -- That which the provider is to call, without a query.
    address text collate "C" not null,
    -- The name of the list.
    source text collate "C" not null,
    -- That of the application whose processes compare, or an empty text.
    version text collate "C" not null default '',
    -- Those that have compared before, the last one first.
    former_versions text[] collate "C" not null default '{}',
    compared_at timestamptz,
    -- In words, one for each difference that is an error. `null` before the first comparison.
    differences text[],
    -- Why the provider could not be asked the last time, and since when it cannot be.
    failure text,
    failed_at timestamptz,
    primary key (endpoint, address, source),
    check ((failure is null) = (failed_at is null))
);

-- Missing deliveries that their provider was asked to send again, and since when.
create table idempotent_webhook.redelivery_requests (
    endpoint text collate "C" not null,
    tenant text collate "C" not null,
    delivery_id text collate "C" not null,
    first_at timestamptz not null default now(),
    primary key (endpoint, tenant, delivery_id)
);

-- Before when deliveries of an endpoint may have been deleted. No row if none was.
create table idempotent_webhook.pruned (
    endpoint text collate "C" not null primary key,
    before timestamptz not null
);

-- Whose turn it is in a task that one process does for all, and when the next turn is due.
create table idempotent_webhook.turns (
    -- `retention`: a round of it. `problems`: a look for problems, of all endpoints. `reconciliation`: a round of a list.
    -- `subscription`: a comparison.
    task text collate "C" not null,
    -- Of `reconciliations` or `subscriptions`, with its path as the address. Empty for the other tasks.
    endpoint text collate "C" not null,
    address text collate "C" not null,
    source text collate "C" not null,
    -- The process whose turn it is, if any.
    process bigint,
    -- From then on, a process may take the turn, unless the one that has it has extended it.
    next_at timestamptz not null,
    primary key (task, endpoint, address, source)
);

-- What operators did, and who.
create table idempotent_webhook.operator_actions (
    id bigint generated always as identity primary key,
    operator text,
    -- `retry`, `discard`, `reprocess`, `forget`, `erase`, `pause`, `resume`.
    action text collate "C" not null,
    -- `null` if it is not for one endpoint alone.
    endpoint text collate "C",
    -- All of them.
    endpoints text[] collate "C",
    tenant text collate "C",
    -- `null` if the action is not for a single delivery.
    delivery_id text collate "C",
    -- In words, for an action on many deliveries. Without the reason, which may quote a request: this row is there for
    -- longer than the deliveries.
    selection text,
    -- That of the reason, for an action on all that failed for one.
    reason_group uuid,
    began_at timestamptz not null default now(),
    -- With each batch, so that an action whose process was killed can be told.
    active_at timestamptz not null default now(),
    ended_at timestamptz,
    cancelled_at timestamptz,
    cancelled_by text,
    -- How many deliveries it has changed.
    changed bigint not null default 0,
    -- How many it has left, since an attempt was working on them.
    running bigint not null default 0,
    -- Why it failed, or why it changed nothing.
    note text
);

create index operator_actions_of_delivery
    on idempotent_webhook.operator_actions (delivery_id, endpoint)
    where delivery_id is not null;

-- The deliveries that an action has made due, to tell what has come of them.
create table idempotent_webhook.operator_action_deliveries (
    action bigint not null
        references idempotent_webhook.operator_actions on delete cascade,
    endpoint text collate "C" not null,
    tenant text collate "C" not null,
    delivery_id text collate "C" not null,
    primary key (action, endpoint, tenant, delivery_id)
);

-- The event types of endpoints that are new or have stopped, at a time. The settings of an endpoint have its table of types.
--
-- New: it is ignored, no name of the table matches it, and it came first within the last week, and after the endpoint has
-- learned which types come: that is once none came first for a week, or after thirty days. For a day after the table has lost a
-- name, nothing is new: what that name has matched before is not known by its own name. Ten of an endpoint are told by name,
-- the most frequent ones, and `*` stands for the rest.
--
-- Stopped: it has a handler, came on seven days or more, and has not come for more than twice its longest pause until then, or
-- three times if it came in less than a hundred minutes, nor for half an average day, by the clock of the endpoint.
create function idempotent_webhook.event_type_problems(endpoints text[], at timestamptz default now())
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
        -- The names of each table, read once and not for each type that came.
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
                    -- By its order of magnitude, so that the ten change seldom.
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
            -- Where nothing comes at all, the clock stands still: the endpoint is silent, or was switched off.
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
create function idempotent_webhook.endpoint_problems(endpoints text[])
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
                -- By the expectation of now: once that was corrected, it is over.
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
                -- Not of an address that no process compares any more.
                ('subscription differs', exists (
                    select
                    from idempotent_webhook.subscriptions as compared
                    join idempotent_webhook.turns as turn using (endpoint, address, source)
                    where compared.endpoint = known.endpoint
                        and cardinality(compared.differences) > 0
                        and turn.task = 'subscription'
                        and turn.next_at > now() - interval '1 hour'
                )),
                -- An API that fails for some hours is the provider's matter. A wrong key stays wrong.
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
