-- Ends a round.
--
-- $1 endpoint, $2 path, $3 source.
-- $4 whether the round is complete.
-- $5 why the round is not complete, or what it left out.
-- $6 whether an incomplete round starts over with the first page.
-- $7 how many missing deliveries were found since the row was last updated.
-- $8 whether the round was on request. Such a round does not change the unfinished round, and leaves no gap.
-- $9 and $10 the start and the end of the round's period.
update idempotent_webhook.reconciliations
set reconciled_until = case
        when $4 and (not $8 or to_timestamp($9) <= reconciled_until)
            then greatest(reconciled_until, to_timestamp($10))
        else reconciled_until
    end,
    round_since = case when $8 or not $4 then round_since end,
    round_until = case when $8 or not $4 then round_until end,
    cursor = case when $8 or not $4 and not $6 then cursor end,
    missed = missed + $7,
    last_missed_at = case when $7 > 0 then now() else last_missed_at end,
    failure = case
        when not $4 then coalesce($5, failure)
        when gap_since is null then $5
        else concat_ws('; ', format(
            'events from %s to %s were not looked at: they were too old for a round',
            to_char(gap_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
            to_char(gap_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ), $5)
    end,
    failed_at = case
        when $5 is not null or gap_since is not null or not $4 and failure is not null
            then coalesce(failed_at, now())
    end
where endpoint = $1 and path = $2 and source = $3
returning failure is not null as has_failed
