-- Makes a kept delivery due now because the provider has sent it again. A delivery that was dead, only recorded or
-- archived gets a new schedule. If another transaction has changed the row and not ended yet, the statement waits for
-- it.
--
-- The subqueries say `select 1` because of Citus: if a statement reads different kinds of tables, Citus cannot run a
-- subquery that selects no column.
--
-- $1 endpoint, $2 tenant, $3 id, $4 name of the tenant, $5 event type, $6 time of receipt, $7 size of the body, $8
-- method, $9 URI, $10 headers, $11 body, $12 time of signing, $13 how long the request stays once the delivery is
-- processed, $14 the environment of the process: in a database that belongs to another environment, nothing
-- changes.
with home as materialized (
    select $14::text is not distinct from (select name from idempotent_webhook.environment) as is_home
),
resent as (
    insert into idempotent_webhook.kept_deliveries as known (
        endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts, first_received_at,
        next_attempt_at, archived_for, body_bytes
    )
    select $1, $2, $3, $4, $5, 'due', 0, to_timestamp($6), now(), $13, $7
    where not exists (
        select 1
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    )
    -- A taken delivery is left out: its attempt is running, or another process takes it over within seconds. This
    -- statement must not wait for the attempt, and `note_resent.sql` has already recorded that the delivery came again.
    and not exists (
        select 1
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
            and state not in ('recorded', 'dead', 'processed') and taken_by is not null
    )
    and (select is_home from home)
    on conflict (endpoint, tenant, delivery_id) do update
    set state = 'due',
        retries = case known.state when 'due' then known.retries else 0 end,
        last_received_at = excluded.last_received_at,
        next_attempt_at = case known.state when 'due' then least(known.next_attempt_at, now()) else now() end,
        unfinished = case known.state when 'due' then known.unfinished else 0 end,
        unreached_at = case known.state when 'due' then known.unreached_at end,
        unreached_status = case known.state when 'due' then known.unreached_status end,
        erased = false,
        taken_by = case known.state when 'due' then known.taken_by end,
        -- An attempt can change the row only while the take number is the same as when the attempt took the row. If the
        -- row was not due, the number changes here. Without that change, an attempt that does not know whether its
        -- commit succeeded could report a failure too late: by then, the delivery is archived and sent again, and the
        -- failure would be written to the row that is due again.
        takes = known.takes + (known.state <> 'due')::int,
        processed_at = null,
        processed_version = null,
        archived_until = null,
        archived_for = excluded.archived_for,
        body_bytes = coalesce(known.body_bytes, excluded.body_bytes)
    returning endpoint, tenant, delivery_id
),
request as (
    insert into idempotent_webhook.kept_requests
        (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
    select endpoint, tenant, delivery_id, 1, $8, $9, $10, $11, to_timestamp($12)
    from resent
    on conflict do nothing
)
select exists (
    select 1
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
) as processed, (select is_home from home) as is_home
