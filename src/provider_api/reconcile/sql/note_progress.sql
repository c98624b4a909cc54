-- Records how far the round has come.
--
-- $1 endpoint, $2 path, $3 source.
-- $4 the cursor of the page to continue with.
-- $5 how many missing deliveries were found since the row was last updated.
-- $6 why the round waits, or `null`.
-- $7 whether the round is on request. Such a round does not change the page of the unfinished round.
update idempotent_webhook.reconciliations
set cursor = case when $7 then cursor else $4 end,
    missed = missed + $5,
    last_missed_at = case when $5 > 0 then now() else last_missed_at end,
    failure = coalesce($6, failure),
    failed_at = case when coalesce($6, failure) is not null then coalesce(failed_at, now()) end
where endpoint = $1 and path = $2 and source = $3
