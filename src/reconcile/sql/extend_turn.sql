-- Extends the turn of the process $4. No row if another process has the turn.
--
-- $1 endpoint, $2 path, $3 source, $5 for how much longer, $6 the page to go on with, $7 how many deliveries were
-- missing since the last time, $8 why it waits, if it does, $9 whether it is a round on request, which leaves the
-- page of the one that is to be resumed.
update idempotent_webhook.reconciliations
set turn_ends_at = now() + $5,
    cursor = case when $9 then cursor else $6 end,
    missed = missed + $7,
    last_missed_at = case when $7 > 0 then now() else last_missed_at end,
    failure = coalesce($8, failure),
    failed_at = case when coalesce($8, failure) is not null then coalesce(failed_at, now()) end
where endpoint = $1 and path = $2 and source = $3 and process = $4
returning 1
