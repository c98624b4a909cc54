-- Deliveries that were not processed yet: those that failed, for endpoints that record or keep
-- failures, and those that were accepted first. The row of a delivery that was processed since is
-- obsolete. Recovery or retention deletes it.
create table idempotent_webhook.kept_deliveries (
    endpoint text collate "C" not null,
    -- Empty unless the tenant is part of the key.
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    -- The tenant, even if it is not part of the key.
    tenant_name text,
    event_type text,
    -- `recorded`: it failed and cannot be run again, because its request is not kept.
    -- `due`: it is run again at `next_attempt_at`.
    -- `dead`: it is not run again, unless an operator says so.
    state text collate "C" not null,
    -- All attempts, those of the provider included.
    attempts integer not null,
    -- Attempts of the schedule. Each is counted before it runs.
    retries integer not null default 0,
    first_received_at timestamptz not null default now(),
    first_failed_at timestamptz,
    last_failed_at timestamptz,
    next_attempt_at timestamptz,
    -- Until then an attempt may be running.
    running_until timestamptz,
    -- The last answer of the handler, or for it.
    status smallint,
    reason text,
    body_bytes integer,
    primary key (endpoint, tenant, delivery_id),
    -- In one check: each insert parses each of them.
    check (state in ('recorded', 'dead') or state = 'due' and next_attempt_at is not null)
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    -- With room for updates in place: counting an attempt changes no index.
    fillfactor = 80
);

create index kept_deliveries_due
    on idempotent_webhook.kept_deliveries (endpoint, next_attempt_at)
    where state = 'due';

-- The requests of kept deliveries, apart, so that counting an attempt does not rewrite a body.
create table idempotent_webhook.kept_requests (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    -- How the columns below are written. A process leaves formats alone that it does not know.
    format smallint not null,
    method text not null,
    uri text not null,
    -- Lines of `name: value`.
    headers bytea not null,
    body bytea not null,
    signed_at timestamptz,
    primary key (endpoint, tenant, delivery_id)
) with (
    -- Bodies are not compressed, and up to 8 kB are stored in the row: most are deleted within a second,
    -- and to compress one takes as long as to write it, or longer.
    toast_tuple_target = 8160
);

alter table idempotent_webhook.kept_requests
    alter column body set storage external;

-- What holds recovery back from an endpoint.
create table idempotent_webhook.kept_endpoints (
    endpoint text collate "C" not null primary key,
    -- An operator has paused it.
    paused_at timestamptz,
    -- The deliveries whose attempts have failed since the last success, some of them at least.
    failed_ids text[] collate "C" not null default '{}',
    -- With many failures in a row, no attempt begins before this time.
    probe_at timestamptz
);

-- The deliveries that are failing, since when, and how often.
create view idempotent_webhook.failing_deliveries as
select
    endpoint,
    tenant,
    delivery_id,
    event_type,
    state,
    attempts,
    first_failed_at,
    last_failed_at,
    next_attempt_at,
    status,
    reason
from idempotent_webhook.kept_deliveries as kept
where last_failed_at is not null
    and not exists (
        select
        from idempotent_webhook.deliveries
        where deliveries.endpoint = kept.endpoint
            and deliveries.tenant = kept.tenant
            and deliveries.delivery_id = kept.delivery_id
    );
