-- The round of the process $4 is over. The next one is due after $5.
--
-- $1 endpoint, $2 path, $3 source, $6 up to when all is reconciled, `null` if the round is not complete: then
-- another process goes on with it, $7 why it is not complete or what it has left out, $8 whether to go on with
-- the first page.
update idempotent_webhook.reconciliations
set process = null,
    turn_ends_at = null,
    next_round_at = now() + $5,
    reconciled_until = greatest(reconciled_until, to_timestamp($6)),
    round_since = case when $6::float8 is null then round_since end,
    round_until = case when $6::float8 is null then round_until end,
    cursor = case when $6::float8 is null and not $8 then cursor end,
    failure = $7,
    failed_at = case when $7 is not null then coalesce(failed_at, now()) end
where endpoint = $1 and path = $2 and source = $3 and process = $4
