-- Takes the deliveries of the endpoint $1 that have been due longest, at most $2 and at most 64: marks them as taken by
-- this process, which then runs them. An attempt is counted when its delivery is taken, before the handler runs. So a
-- delivery whose handler kills the process uses up its attempts. The commit waits for the disk, so that the count is
-- not lost if a handler makes Postgres crash.
--
-- A process takes deliveries under a number in the table `processes` (`liveness/mod.rs`). If the process dies,
-- `expire.sql` deletes the number, and its deliveries are free.
--
-- A delivery is taken alone if it may kill its process, that is, if its last attempt did not end. If a process dies
-- after it has taken several deliveries together, any of these deliveries may have killed it, and most had not started.
-- So the next take of such a delivery does not count another attempt. If it did, one delivery that kills every process
-- would make the 63 deliveries that were taken with it use up their attempts.
--
-- $3 a time to use instead of now, in Unix seconds, $4 the number under which the deliveries are taken, $5 whether this
-- is a probe: the breaker is open, and `start_probe.sql` has allowed the probe, $6 the environment of the process: in a
-- database that belongs to another environment, nothing is taken. An adoption (`operator/adopt.rs`) changes the
-- environment and pauses endpoints in one transaction, so this statement sees either both changes or neither.
--
-- The inner limit is a literal and not a parameter, so that the planner knows that it is small. The outer limit ends
-- the scan, so that deliveries which are not taken are not locked. After the first delivery, more are taken only while
-- all bodies together are within 16 MiB: `requests.sql` reads them at once, after the commit. The attempts are counted
-- before that, so even a delivery whose body kills the process that reads it uses up its attempts.
with due as (
    select *
    from (
        select
            endpoint, tenant, delivery_id, next_attempt_at, taken_by, taken_with_others, unfinished, body_bytes
        from idempotent_webhook.kept_deliveries as kept
        where endpoint = $1
            and state = 'due'
            and next_attempt_at <= coalesce(to_timestamp($3), now())
            -- Without this condition, a process could take a delivery that is running. Neither this condition nor the
            -- next one is a plain `exists`, because the planner could turn a plain `exists` into a join of all rows.
            and (
                taken_by is null
                or not exists (select from idempotent_webhook.processes where number = taken_by)
            )
            and not exists (
                select
                from idempotent_webhook.kept_endpoints
                where endpoint = $1 and (paused_at is not null or probe_at is not null and not $5)
            )
            and $6::text is not distinct from (select name from idempotent_webhook.environment)
        order by next_attempt_at
        limit 64
        for update of kept skip locked
    ) as due
    limit $2
),
chosen as (
    select
        endpoint, tenant, delivery_id,
        taken_by is not null and not taken_with_others as found_unfinished,
        taken_by is not null and taken_with_others as found_uncounted,
        count(*) over () > 1 as with_others
    from (
        select
            due.*,
            row_number() over in_turn as place,
            sum(body_bytes) over in_turn as bytes,
            bool_or(taken_by is not null or unfinished > 0) over in_turn as may_kill
        from due
        window in_turn as (order by next_attempt_at, delivery_id, tenant rows unbounded preceding)
    ) as due
    where place = 1 or not may_kill and coalesce(bytes, 0) <= 16 * 1024 * 1024
)
update idempotent_webhook.kept_deliveries as kept
set attempts = kept.attempts + (not chosen.found_uncounted)::int,
    retries = kept.retries + (not chosen.found_uncounted)::int,
    takes = kept.takes + 1,
    unfinished = kept.unfinished + chosen.found_unfinished::int,
    taken_by = $4,
    taken_with_others = chosen.with_others
from chosen
-- A left join, so that a delivery whose request is missing is taken as well, and becomes dead.
left join idempotent_webhook.kept_requests as request
    on request.delivery_id = any (array[chosen.delivery_id])
        and request.endpoint = chosen.endpoint
        and request.tenant = chosen.tenant
where kept.endpoint = any (array[chosen.endpoint])
    and kept.tenant = chosen.tenant
    and kept.delivery_id = chosen.delivery_id
returning
    kept.tenant, kept.tenant_name, kept.delivery_id, kept.event_type, kept.attempts, kept.retries,
    kept.takes, kept.unfinished as unfinished_in_a_row, chosen.found_unfinished,
    kept.reprocessed, kept.reconciled,
    extract(epoch from kept.first_received_at)::float8 as first_received_at,
    extract(epoch from request.signed_at)::float8 as signed_at
