-- What came in and with which outcome: a counter for each endpoint, hour, outcome and version. Each process adds its
-- numbers every few seconds.
create table idempotent_webhook.activity (
    endpoint text collate "C" not null,
    -- In UTC.
    hour timestamptz not null,
    -- `request`: a request of the provider. `recovery`: an attempt at a kept delivery. `handler`: a call of
    -- the handler. `reconciliation`: a delivery that never came, with the outcome `missed`. `ignored`: an event
    -- that was ignored. `secret`: an authentic delivery, where there are several secrets.
    -- `version`: an authentic delivery whose payload has an unexpected version.
    source text collate "C" not null,
    -- For a handler: the longest time of a bucket in milliseconds, `1` to `50000`, or `inf`. For an ignored event: its
    -- type, or `*`. For a secret: its place, `0` to `9`, or `*`. For a version: its name, or `*`.
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
    -- A name of the table that has a handler, or the type of an ignored event that no name matches. `*` stands for the
    -- types beyond a bound.
    event_type text collate "C" not null,
    -- For `*`: since it came for the first time in a week.
    first_at timestamptz not null default now(),
    -- To the minute.
    last_at timestamptz not null default now(),
    -- On how many days it came, in UTC, and in how many minutes.
    days integer not null default 1,
    minutes integer not null default 1,
    -- Whether it had a handler when it came last.
    is_handled boolean not null default false,
    -- When it came last, by the clock of the endpoint, which counts only minutes in which a type with a handler came:
    -- nights, weekends and outages of the whole endpoint take no time. 0 if it had no handler.
    clock integer not null default 0,
    -- The longest time between two of them, by that clock.
    longest_pause integer not null default 0,
    primary key (endpoint, event_type)
-- With room for updates in place: a row is updated each minute.
) with (fillfactor = 50);

-- Why requests were rejected, in the same way.
create table idempotent_webhook.rejections (
    endpoint text collate "C" not null,
    -- In UTC.
    hour timestamptz not null,
    -- One of a few names, as in the metrics.
    cause text collate "C" not null,
    count bigint not null,
    last_at timestamptz not null,
    -- The reason of the last one. It contains nothing that an unauthenticated sender has chosen.
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
    -- Since when the layer ignores types that its table has no name for.
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
    -- Events before this time are left alone: it is not recorded which of them were processed.
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
    -- The address that the provider should call, without a query.
    address text collate "C" not null,
    -- The name of the list.
    source text collate "C" not null,
    -- The version of the application whose processes compare, or an empty text.
    version text collate "C" not null default '',
    -- The versions that have compared before, the last one first.
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

-- Missing deliveries that the provider was asked to send again, and since when.
create table idempotent_webhook.redelivery_requests (
    endpoint text collate "C" not null,
    tenant text collate "C" not null,
    delivery_id text collate "C" not null,
    first_at timestamptz not null default now(),
    primary key (endpoint, tenant, delivery_id)
);

-- Deliveries of an endpoint from before this time may have been deleted. No row if none was.
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

-- The environment of the database, such as `production`. No row, if it has none. A process of another environment, or of none,
-- runs nothing of what is kept here.
create table idempotent_webhook.environment (
    -- There is one row at most.
    is_only boolean not null primary key default true check (is_only),
    name text collate "C" not null,
    named_at timestamptz not null default now()
);

-- The other environments of which a process has used this database, for the dashboard.
create table idempotent_webhook.other_environments (
    -- Empty, if the process has none.
    name text collate "C" not null primary key,
    -- Of any of its processes.
    seen_at timestamptz not null
);

-- What operators did, and who.
create table idempotent_webhook.operator_actions (
    id bigint generated always as identity primary key,
    operator text,
    -- `retry`, `discard`, `reprocess`, `forget`, `erase`, `pause`, `resume`, `adopt`.
    action text collate "C" not null,
    -- `null` if it is not for one endpoint alone.
    endpoint text collate "C",
    -- All of them.
    endpoints text[] collate "C",
    tenant text collate "C",
    -- `null` if the action is not for a single delivery.
    delivery_id text collate "C",
    -- In words, for an action on many deliveries. Without the reason, which may quote a request: this row stays longer
    -- than the deliveries. Of an adoption: the environments before and after it.
    selection text,
    -- The group of the reason, for an action on all that failed for one.
    reason_group uuid,
    began_at timestamptz not null default now(),
    -- Set with each batch: it shows an action whose process was killed.
    active_at timestamptz not null default now(),
    ended_at timestamptz,
    cancelled_at timestamptz,
    cancelled_by text,
    -- How many deliveries it has changed. Of an adoption: how many endpoints it has paused.
    changed bigint not null default 0,
    -- How many it has left alone, as an attempt was working on them.
    running bigint not null default 0,
    -- Why it failed, or why it changed nothing.
    note text
);

create index operator_actions_of_delivery
    on idempotent_webhook.operator_actions (delivery_id, endpoint)
    where delivery_id is not null;

-- The deliveries that an action has made due, to show what became of them.
create table idempotent_webhook.operator_action_deliveries (
    action bigint not null
        references idempotent_webhook.operator_actions on delete cascade,
    endpoint text collate "C" not null,
    tenant text collate "C" not null,
    delivery_id text collate "C" not null,
    primary key (action, endpoint, tenant, delivery_id)
);
