-- Takes the deliveries of the endpoint $1 that are due longest, at most $2 and at most eight. They are
-- counted before they run, so that one whose handler kills the process uses up its attempts. The commit
-- waits for the disk: a handler that makes Postgres crash uses up its attempts, too.
--
-- $3 a time instead of now, in Unix seconds, $4 the number under which they are taken, $5 whether it is a probe: the
-- breaker is open, and `start_probe.sql` has let it through.
--
-- The limit is a number in the text, for the planner to know that it is a small one. The bodies of all but the first one
-- are within 16 MiB: they are read at once, by `requests.sql`, after the commit. A body that kills the process which
-- reads it uses up the attempts of its delivery, too.
with due as (
    select endpoint, tenant, delivery_id, next_attempt_at, taken_by, body_bytes
    from idempotent_webhook.kept_deliveries as kept
    where endpoint = $1
        and state = 'due'
        and next_attempt_at <= coalesce(to_timestamp($3), now())
        -- Without this: 1 takes it, and takes it again while it runs.
        -- Neither this nor the next is an `exists` alone, which the planner could turn into a join of all of them.
        and (
            taken_by is null
            or not exists (select from idempotent_webhook.processes where number = taken_by)
        )
        and not exists (
            select
            from idempotent_webhook.kept_endpoints
            where endpoint = $1 and (paused_at is not null or probe_at is not null and not $5)
        )
    order by next_attempt_at
    limit 8
    for update of kept skip locked
),
chosen as (
    select endpoint, tenant, delivery_id, taken_by
    from (
        select
            due.*,
            row_number() over in_turn as place,
            sum(body_bytes) over in_turn as bytes
        from due
        window in_turn as (order by next_attempt_at, delivery_id, tenant rows unbounded preceding)
    ) as due
    where place = 1 or place <= $2 and coalesce(bytes, 0) <= 16 * 1024 * 1024
)
update idempotent_webhook.kept_deliveries as kept
set attempts = kept.attempts + 1,
    retries = kept.retries + 1,
    takes = kept.takes + 1,
    unfinished = kept.unfinished + (chosen.taken_by is not null)::int,
    taken_by = $4
from chosen
-- One whose request is not there has to end, too.
left join idempotent_webhook.kept_requests as request
    on request.delivery_id = any (array[chosen.delivery_id])
        and request.endpoint = chosen.endpoint
        and request.tenant = chosen.tenant
where kept.endpoint = any (array[chosen.endpoint])
    and kept.tenant = chosen.tenant
    and kept.delivery_id = chosen.delivery_id
returning
    kept.tenant, kept.tenant_name, kept.delivery_id, kept.event_type, kept.attempts, kept.retries,
    kept.takes, kept.unfinished as unfinished_in_a_row, chosen.taken_by is not null as found_unfinished,
    kept.reprocessed, kept.reconciled,
    extract(epoch from kept.first_received_at)::float8 as first_received_at,
    extract(epoch from request.signed_at)::float8 as signed_at
