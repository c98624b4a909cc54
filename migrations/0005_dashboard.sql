-- What came in and what became of it: a counter for each endpoint, hour and outcome, to which each
-- process adds its numbers every few seconds.
create table idempotent_webhook.activity (
    endpoint text collate "C" not null,
    -- In UTC.
    hour timestamptz not null,
    -- `request`: a request of the provider. `recovery`: an attempt at a kept delivery.
    source text collate "C" not null,
    outcome text collate "C" not null,
    count bigint not null,
    last_at timestamptz not null,
    primary key (endpoint, hour, source, outcome)
-- With room for updates in place: a row is updated for an hour.
) with (fillfactor = 50);

-- Before when deliveries may have been deleted: the latest of the rows.
create table idempotent_webhook.pruned (
    before timestamptz not null
);

alter table idempotent_webhook.kept_deliveries
    -- The last failed attempts, oldest first: `at` in Unix seconds, `by` (`provider` or `recovery`),
    -- `status`, `reason`.
    add column history jsonb not null default '[]',
    -- Equal for reasons that differ only in words with digits, such as ids and times. Not generated:
    -- each insert would parse the expression, those without a reason included.
    add column reason_group uuid;

-- What is failing, newest first: all of it, by reason, and by event type. Deliveries that are accepted
-- first and succeed are not in these.
create index kept_deliveries_failed
    on idempotent_webhook.kept_deliveries (endpoint, state, last_failed_at, delivery_id, tenant)
    where last_failed_at is not null;

create index kept_deliveries_reasons
    on idempotent_webhook.kept_deliveries (endpoint, state, reason_group, last_failed_at)
    where last_failed_at is not null;

create index kept_deliveries_event_types
    on idempotent_webhook.kept_deliveries (endpoint, state, event_type, last_failed_at)
    where last_failed_at is not null;

-- For the look-up of ids: of what can run again by its request, of the rest by its own row.
alter table idempotent_webhook.kept_requests
    drop constraint kept_requests_pkey,
    add primary key (delivery_id, endpoint, tenant);

create index kept_deliveries_recorded
    on idempotent_webhook.kept_deliveries (delivery_id)
    where state = 'recorded';

-- When a process with a `Recovery` for the endpoint was last there.
alter table idempotent_webhook.kept_endpoints
    add column served_at timestamptz;

-- What operators did, and who.
create table idempotent_webhook.operator_actions (
    id bigint generated always as identity primary key,
    operator text,
    -- `retry`, `discard`, `forget`, `pause`, `resume`.
    action text collate "C" not null,
    endpoint text collate "C" not null,
    tenant text collate "C",
    -- `null` if the action is not for a single delivery.
    delivery_id text collate "C",
    -- In words, for an action on many deliveries.
    selection text,
    began_at timestamptz not null default now(),
    -- With each batch, so that an action whose process was killed can be told.
    active_at timestamptz not null default now(),
    ended_at timestamptz,
    cancelled_at timestamptz,
    cancelled_by text,
    -- How many deliveries it has changed.
    changed bigint not null default 0,
    -- Why it failed, or why it changed nothing.
    note text
);

create index operator_actions_of_delivery
    on idempotent_webhook.operator_actions (delivery_id, endpoint)
    where delivery_id is not null;
