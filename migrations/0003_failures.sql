-- Deliveries whose attempts were rolled back, for endpoints that record failures. The row of a
-- delivery that was processed since is obsolete; retention deletes it.
create table idempotent_webhook.failures (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    event_type text,
    attempts integer not null default 1,
    first_failed_at timestamptz not null default now(),
    last_failed_at timestamptz not null default now(),
    -- The last answer to the sender.
    status smallint not null,
    reason text not null,
    primary key (endpoint, tenant, delivery_id)
);

-- The deliveries that are failing, since when, and how often.
create view idempotent_webhook.failing_deliveries as
select
    endpoint,
    tenant,
    delivery_id,
    event_type,
    attempts,
    first_failed_at,
    last_failed_at,
    status,
    reason
from idempotent_webhook.failures
where not exists (
    select
    from idempotent_webhook.deliveries
    where deliveries.endpoint = failures.endpoint
        and deliveries.tenant = failures.tenant
        and deliveries.delivery_id = failures.delivery_id
);
