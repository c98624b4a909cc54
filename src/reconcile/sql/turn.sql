-- After a page: it is still the turn of the process $4, the next page is at $6, and $7 deliveries were missing.
-- No row if it is another one's turn.
--
-- $1 endpoint, $2 path, $3 source, $5 for how much longer, $8 and $9 the times of the events of the round, $10 why
-- it waits, if it does.
update idempotent_webhook.reconciliations
set turn_ends_at = now() + $5,
    cursor = $6,
    missed = missed + $7,
    last_missed_at = case when $7 > 0 then now() else last_missed_at end,
    round_since = to_timestamp($8),
    round_until = to_timestamp($9),
    failure = $10,
    failed_at = case when $10 is not null then coalesce(failed_at, now()) end
where endpoint = $1 and path = $2 and source = $3 and process = $4
returning 1
