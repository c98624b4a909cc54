-- The round of the process $4 is over. The next one is due after $5.
--
-- $1 endpoint, $2 path, $3 source, $6 whether the round is complete, $7 why it is not complete or what it has
-- left out, $8 whether to go on with the first page, if it is not complete, $9 how many deliveries were
-- missing since the last time, $10 whether it was a round on request: it leaves the round that is to be resumed, and
-- no gap behind it, $11 and $12 the times of the events that it has looked at.
update idempotent_webhook.reconciliations
set process = null,
    turn_ends_at = null,
    next_round_at = now() + $5,
    reconciled_until = case
        when $6 and (not $10 or to_timestamp($11) <= reconciled_until)
            then greatest(reconciled_until, to_timestamp($12))
        else reconciled_until
    end,
    round_since = case when $10 or not $6 then round_since end,
    round_until = case when $10 or not $6 then round_until end,
    cursor = case when $10 or not $6 and not $8 then cursor end,
    missed = missed + $9,
    last_missed_at = case when $9 > 0 then now() else last_missed_at end,
    failure = case
        when not $6 then coalesce($7, failure)
        when gap_since is null then $7
        else concat_ws('; ', format(
            'events from %s to %s were not looked at: they were too old for a round',
            to_char(gap_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
            to_char(gap_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ), $7)
    end,
    failed_at = case
        when $7 is not null or gap_since is not null or not $6 and failure is not null
            then coalesce(failed_at, now())
    end
where endpoint = $1 and path = $2 and source = $3 and process = $4
returning failure is not null as has_failed
