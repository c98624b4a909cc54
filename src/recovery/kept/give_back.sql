-- Without `takes = $4`: 1 is silent, 2 takes it, and 1, whose claim is refused, frees what 2 runs.
--
-- Takes back an attempt that was counted and did not begin: the one that was number $4 to take the
-- delivery. The next one is due after $5. $6 is how many attempts of the schedule it was, $7 whether it has
-- reached no layer, $8 what was answered instead.
update idempotent_webhook.kept_deliveries
set attempts = attempts - 1,
    retries = greatest(retries - $6, 0),
    taken_by = null,
    unreached_at = case when $7 then now() else unreached_at end,
    unreached_status = case when $7 then $8 else unreached_status end,
    next_attempt_at = now() + $5
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state = 'due' and takes = $4
    -- Without this: the answer to the write is lost, it is written again, and two attempts are taken back.
    and taken_by is not null
returning true
