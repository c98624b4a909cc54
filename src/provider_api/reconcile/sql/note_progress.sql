-- Notes how far the round is.
--
-- $1 endpoint, $2 path, $3 source, $4 the page to go on with, $5 how many deliveries were missing since the last time, $6 why
-- it waits, if it does, $7 whether it is a round on request, which leaves the page of the unfinished round.
update idempotent_webhook.reconciliations
set cursor = case when $7 then cursor else $4 end,
    missed = missed + $5,
    last_missed_at = case when $5 > 0 then now() else last_missed_at end,
    failure = coalesce($6, failure),
    failed_at = case when coalesce($6, failure) is not null then coalesce(failed_at, now()) end
where endpoint = $1 and path = $2 and source = $3
