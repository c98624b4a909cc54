-- Keeps deliveries of the endpoint $1 before their handlers run, if they are neither processed nor known. The statement
-- does not wait for a transaction that changes a row, such as the transaction of a handler. It waits only for a
-- transaction that inserts a row with the same key.
--
-- $2 tenants, $3 ids, $4 names of tenants, $5 event types, $6 times of receipt, $7 the number under which a
-- delivery is taken if its attempt starts at once, $8 sizes of bodies, $9 methods, $10 URIs, $11 headers, $12
-- bodies, $13 times of signing, $14 whether attempts wait while the endpoint is paused, $15 whether the requests
-- are made from the provider's list of events, $16 how long the requests stay once their deliveries are processed,
-- $17 the environment of the process.
--
-- If $14 is true, nothing is kept in a database that belongs to another environment, because no process would run the
-- kept delivery. The request is then handled before it is answered. If $14 is false, the request itself makes the
-- attempt, so its delivery is kept and run in any environment.
--
-- The `select` around a parameter hides the parameter's value from the planner. If the planner saw how many deliveries
-- there are, and whether $14 and $15 are true, it would plan the statement for each call, which takes longer than to
-- run it. The requests are unnested separately, so that no body is copied with the other columns.
with home as materialized (
    select
        not (select $14::boolean)
        or (select $17::text) is not distinct from (select name from idempotent_webhook.environment) as is_home
),
new as materialized (
    select
        $1 as endpoint, tenant, delivery_id, tenant_name, event_type, received_at, body_bytes, number,
        case when not ((select $14::boolean) and exists (
            select
            from idempotent_webhook.kept_endpoints
            where endpoint = $1 and paused_at is not null
        )) then taken_by end as taken_by
    from unnest(
        (select $2::text[]), $3::text[], $4::text[], $5::text[], $6::float8[], $7::bigint[], $8::int[]
    ) with ordinality as new (
        tenant, delivery_id, tenant_name, event_type, received_at, taken_by, body_bytes, number
    )
),
processed as materialized (
    select number
    from new
    join idempotent_webhook.deliveries as claim
        on claim.delivery_id = any (array[new.delivery_id])
            and claim.endpoint = new.endpoint
            and claim.tenant = new.tenant
),
known as materialized (
    select number
    from new
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[new.endpoint])
            and kept.tenant = new.tenant
            and kept.delivery_id = new.delivery_id
    union all
    -- For a provider list, a discarded delivery is known. Without this part, a discarded delivery could still run: a
    -- list finds that it is missing, then it arrives and is discarded, and then the list keeps it.
    select number
    from new
    join idempotent_webhook.discarded as discarded
        on discarded.delivery_id = any (array[new.delivery_id])
            and discarded.endpoint = new.endpoint
            and discarded.tenant = new.tenant
    where (select $15::boolean)
),
kept as (
    insert into idempotent_webhook.kept_deliveries (
        endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts, taken_by,
        first_received_at, next_attempt_at, archived_for, body_bytes, reconciled
    )
    select
        endpoint, tenant, delivery_id, tenant_name, event_type, 'due', (taken_by is not null)::int,
        taken_by, to_timestamp(received_at), now(), $16, body_bytes, $15
    from new
    where number not in (select number from processed union all select number from known)
        and (select is_home from home)
    -- All processes insert in the same order, so that two processes cannot deadlock. If a key occurs several times, the
    -- first delivery with this key is written.
    order by tenant, delivery_id, number
    on conflict do nothing
    returning tenant, delivery_id, takes, taken_by
),
request as (
    insert into idempotent_webhook.kept_requests
        (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
    select $1, tenant, delivery_id, 1, method, uri, headers, body, to_timestamp(signed_at)
    from unnest(
        (select $2::text[]), $3::text[], $9::text[], $10::text[], $11::bytea[], $12::bytea[],
        $13::float8[]
    ) as request (tenant, delivery_id, method, uri, headers, body, signed_at)
    join kept using (tenant, delivery_id)
    on conflict do nothing
)
select
    new.number in (select number from processed) as processed,
    (select is_home from home) as is_home,
    kept.takes,
    kept.taken_by is not null as is_taken
from new
left join kept using (tenant, delivery_id)
order by new.number
