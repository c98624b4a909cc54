-- Records that an attempt at a kept delivery has failed. $9 is the take number of the attempt: the counter `takes` of
-- the row, which each take increases. The statement has no effect if the delivery was taken again or changed meanwhile.
-- So a process cannot free a delivery that another process runs. Suppose that the handler of process 1 fails, process 1
-- falls silent, and process 2 takes the delivery. Process 1 may then try to record its failure.
--
-- $1 endpoint, $2 tenant, $3 id, $4 status, $5 reason, $6 state, $7 time until the next attempt, $8 how many
-- attempts were counted and did not start, $10 after how many failures in a row the breaker opens, or `null` if
-- this failure does not count, $11 the time until the first probe, $12 who made the attempt, `provider` or
-- `recovery`, $13 how long only this process may report the death of the delivery to a hook, or `null` if there is
-- no hook.
with failed as (
    update idempotent_webhook.kept_deliveries as kept
    set attempts = attempts - $8,
        retries = greatest(retries - $8, 0),
        first_failed_at = coalesce(first_failed_at, now()),
        last_failed_at = now(),
        status = $4,
        reason = $5,
        reason_group = idempotent_webhook.reason_group($5),
        taken_by = null,
        -- If this attempt did not start, the number of earlier attempts that did not end is not reset.
        unfinished = case $8 when 0 then 0 else unfinished end,
        unreached_at = case $8 when 0 then null else unreached_at end,
        unreached_status = case $8 when 0 then null else unreached_status end,
        state = $6,
        next_attempt_at = now() + $7,
        died_at = case $6 when 'dead' then now() else died_at end,
        untold_at = case $6 when 'dead' then now() + $13 end,
        history = idempotent_webhook.with_attempt(history, $12, $4, $5)
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and takes = $9
        -- A taken delivery is always due. Without this condition, a failure would be recorded twice if the answer to
        -- this statement is lost and the statement is repeated.
        and taken_by is not null
    returning state, takes
),
breaker as (
    insert into idempotent_webhook.kept_endpoints as known (endpoint, failed_ids, probe_at)
    select $1, array[$3], case when $10 <= 1 then now() + $11 end
    from failed
    where $10::int is not null
    on conflict (endpoint) do update
    set failed_ids = known.failed_ids || excluded.failed_ids,
        probe_at = coalesce(
            known.probe_at,
            case when cardinality(known.failed_ids) + 1 >= $10 then now() + $11 end
        )
    where not known.failed_ids @> excluded.failed_ids and cardinality(known.failed_ids) < 1000
)
select state, state = 'dead' as died, takes
from failed
union all
-- This part is for a repeated statement: the first run made the delivery dead, and the answer to its commit was lost.
-- This part sees the row as it was before the update above.
select state, true, takes
from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state not in ('recorded', 'due', 'processed') and takes = $9 and taken_by is null
