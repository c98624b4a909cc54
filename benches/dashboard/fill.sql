-- `bench.deliveries` processed and `bench.dead` dead deliveries in eight endpoints, with everything that belongs to
-- them. Rows are ordered by time; ids and endpoints are mixed.
--
-- large      nine of ten dead deliveries, most of them for one reason, the rest for 400
-- reasons    3,000 reasons
-- tenants    3,000 tenants
-- recording  20,000 recorded failures
-- quiet_1..4
-- further_1..192, with activity, and with dead deliveries that all have one reason

create function pg_temp.deliveries() returns int language sql stable
    return current_setting('bench.deliveries')::int;

create function pg_temp.dead() returns int language sql stable
    return current_setting('bench.dead')::int;

-- A word that consists of letters only, so that each word makes a reason of its own.
create function pg_temp.word(n int) returns text language sql immutable
    return translate(left(md5(n::text), 12), '0123456789', 'ghijklmnop');

create function pg_temp.event_type(n int) returns text language sql immutable
    return case
        when n % 100000 = 5 then 'order.disputed'
        when n % 1000 = 3 then 'order.refunded'
        when n % 10 = 1 then 'order.created'
        else 'order.updated'
    end;

create function pg_temp.endpoint(n int) returns text language sql immutable
    return case
        when n % 10 < 9 then 'large'
        when n % 100 < 50 then 'reasons'
        when n % 100 < 80 then 'tenants'
        else 'quiet_' || n / 100 % 4 + 1
    end;

set synchronous_commit = off;
set maintenance_work_mem = '1GB';

alter table idempotent_webhook.deliveries drop constraint deliveries_pkey;

insert into idempotent_webhook.deliveries (endpoint, delivery_id, event_type, received_at)
select
    pg_temp.endpoint(n), md5('processed ' || n), pg_temp.event_type(n),
    now() - interval '45 days' * (1 - n::float8 / pg_temp.deliveries())
from generate_series(1, pg_temp.deliveries()) as n;

-- The dead deliveries. Of each hundred rows, ninety belong to `large`.
insert into idempotent_webhook.kept_deliveries (
    endpoint, tenant, tenant_name, delivery_id, event_type, state, attempts, retries,
    first_received_at, first_failed_at, last_failed_at, status, reason, reason_group, body_bytes,
    history
)
select
    endpoint, tenant, nullif(tenant, ''), md5('dead ' || n), pg_temp.event_type(n), 'dead', 12, 11,
    failed_at - interval '1 day', failed_at - interval '1 day', failed_at, 500, reason,
    idempotent_webhook.reason_group(reason), 200,
    (
        select jsonb_agg(
            jsonb_build_object(
                'at', extract(epoch from failed_at) - 7200 * attempt, 'by', 'recovery',
                'status', 500, 'reason', reason
            )
            order by attempt desc
        )
        from generate_series(0, 11) as attempt
    )
from (
    select
        n, pg_temp.endpoint(n) as endpoint,
        now() - interval '30 days' * (1 - n::float8 / pg_temp.dead())
            - interval '1 hour' * random() as failed_at,
        case when pg_temp.endpoint(n) = 'tenants' then 'tenant-' || n / 100 % 3000 else '' end
            as tenant,
        case
            when n % 10 < 8
                then 'error sending request for order ' || n || ': connection refused (os error 111)'
            when pg_temp.endpoint(n) = 'large' then 'no stock of ' || pg_temp.word(n / 10 % 400)
            when pg_temp.endpoint(n) = 'reasons'
                then 'no template ' || pg_temp.word(n / 100 * 5 % 3000 + n / 10 % 5)
            else 'the handler took longer than 10 s'
        end as reason
    from generate_series(1, pg_temp.dead()) as n
) as dead;

-- In addition, a quarter as many dead deliveries, spread over all `further` endpoints, for one reason.
insert into idempotent_webhook.kept_deliveries (
    endpoint, delivery_id, event_type, state, attempts, retries, first_received_at, first_failed_at,
    last_failed_at, status, reason, reason_group, body_bytes
)
select
    'further_' || n % 192 + 1, md5('further ' || n), pg_temp.event_type(n), 'dead', 12, 11,
    failed_at, failed_at, failed_at, 503, 'the ledger is away', idempotent_webhook.reason_group('the ledger is away'), 200
from generate_series(1, pg_temp.dead() / 4) as n
cross join lateral (select now() - interval '1 second' * n as failed_at) as failed;

-- 20,000 due deliveries. Half have not failed yet, and half are overdue.
insert into idempotent_webhook.kept_deliveries (
    endpoint, delivery_id, event_type, state, attempts, first_received_at, first_failed_at,
    last_failed_at, next_attempt_at, status, reason, reason_group, body_bytes
)
select
    case when n % 4 = 0 then 'quiet_' || n / 4 % 4 + 1 else 'large' end,
    md5('due ' || n), pg_temp.event_type(n), 'due', (n % 8 < 4)::int,
    now() - interval '1 hour', failed_at, failed_at,
    now() + interval '1 day' * (random() - 0.5),
    case when n % 8 < 4 then 503 end,
    case when n % 8 < 4 then 'the pool timed out' end,
    case when n % 8 < 4 then idempotent_webhook.reason_group('the pool timed out') end,
    200
from generate_series(1, 20000) as n
cross join lateral (
    select case when n % 8 < 4 then now() - interval '1 hour' * random() end as failed_at
) as failed;

-- 50,000 recorded deliveries.
insert into idempotent_webhook.kept_deliveries (
    endpoint, delivery_id, event_type, state, attempts, first_received_at, first_failed_at,
    last_failed_at, status, reason, reason_group
)
select
    case when n <= 20000 then 'recording' else 'large' end,
    md5('recorded ' || n), pg_temp.event_type(n), 'recorded', 1, failed_at, failed_at, failed_at,
    500, 'the pool timed out', idempotent_webhook.reason_group('the pool timed out')
from generate_series(1, 50000) as n
cross join lateral (select now() - interval '5 seconds' * (50000 - n) as failed_at) as failed;

insert into idempotent_webhook.kept_requests
    (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
select
    endpoint, tenant, delivery_id, 1, 'POST', '/webhooks', convert_to('content-type: application/json' || chr(10), 'utf8'),
    convert_to(json_build_object('id', delivery_id, 'text', repeat('x', 150))::text, 'utf8'),
    first_received_at
from idempotent_webhook.kept_deliveries
where state <> 'recorded';

-- The activity of a year, and of a month for 192 further endpoints, with a new version each day.
insert into idempotent_webhook.activity (endpoint, hour, source, outcome, version, count, last_at)
select endpoint, hour, source, outcome, 'v' || extract(day from hour), 1000, hour
from (
    select endpoint, interval '1 year' as age
    from unnest(array[
        'large', 'reasons', 'tenants', 'recording', 'quiet_1', 'quiet_2', 'quiet_3', 'quiet_4'
    ]) as known (endpoint)
    union all
    select 'further_' || n, interval '1 month' from generate_series(1, 192) as n
) as known
cross join generate_series(
    date_trunc('hour', now()) - age, date_trunc('hour', now()), interval '1 hour'
) as hour
cross join (
    values
        ('request', 'processed'), ('request', 'duplicate'), ('request', 'kept'),
        ('request', 'rejected'), ('recovery', 'processed'), ('recovery', 'failed'),
        ('handler', '5'), ('handler', '10'), ('handler', '20'), ('handler', '50'),
        ('handler', '100'), ('handler', '200')
) as counted (source, outcome)
-- The endpoint `quiet_4` has no success in the whole year.
where endpoint <> 'quiet_4' or outcome <> 'processed';

insert into idempotent_webhook.rejections (endpoint, hour, cause, count, last_at, reason)
select endpoint, hour, cause, 100, hour, 'no signature matches: another secret, or a body that was changed'
from (select distinct endpoint from idempotent_webhook.activity) as known
cross join generate_series(
    date_trunc('hour', now()) - interval '1 month', date_trunc('hour', now()), interval '1 hour'
) as hour
cross join unnest(array['no_match', 'missing_header', 'too_old', 'method_not_allowed']) as cause;

insert into idempotent_webhook.endpoint_settings (endpoint, version, settings, told_at)
select distinct endpoint, 'v1', '{"provider": "github", "handler_timeout_seconds": 30}'::jsonb, now()
from idempotent_webhook.activity;

insert into idempotent_webhook.kept_endpoints (endpoint, paused_at, served_at)
values ('large', now(), now()), ('quiet_1', null, now());

insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
select distinct endpoint, interval '3 days' from idempotent_webhook.kept_endpoints;

insert into idempotent_webhook.operator_actions
    (operator, action, endpoint, delivery_id, began_at, active_at, ended_at, changed)
select
    'operator-' || n % 20, 'retry', pg_temp.endpoint(n), md5('dead ' || n),
    at, at, at, 1
from generate_series(1, 100000) as n
cross join lateral (select now() - interval '1 minute' * (100000 - n) as at) as began;

-- An action on many deliveries. Some of them are dead, and most are processed.
with action as (
    insert into idempotent_webhook.operator_actions
        (operator, action, endpoint, selection, ended_at, changed)
    values ('operator-1', 'retry', 'large', 'what is dead', now(), 50000)
    returning id
)
insert into idempotent_webhook.operator_action_deliveries (action, endpoint, tenant, delivery_id)
select
    action.id, 'large', '',
    case n % 10 when 0 then md5('dead ' || n / 10 * 10 + 1) else md5('processed ' || n * 10) end
from action
cross join generate_series(1, 50000) as n
on conflict do nothing;

alter table idempotent_webhook.deliveries add primary key (delivery_id, endpoint, tenant);
