-- Starts a round, or resumes an unfinished one. The period and the page of a round on request are not stored, so such a
-- round does not change the period and the page of an unfinished round.
--
-- $1 endpoint, $2 path, $3 source.
-- $4 the time since which deliveries are recorded.
-- $5 the time up to which the list is reconciled, at this path or at another one.
-- $6 whether the round is on request.
-- $7 and $8 the start and the end of the round's period.
-- $9 whether the round resumes an unfinished one.
-- $10 the start of the gap, which ends at $7: events in the gap are too old for this round. `null` if there is no
-- gap.
insert into idempotent_webhook.reconciliations as known (
    endpoint, path, source, begins_at, reconciled_until, round_since, round_until, gap_since, gap_until
)
values (
    $1, $2, $3, to_timestamp($4), to_timestamp($5),
    case when not $6 then to_timestamp($7) end,
    case when not $6 then to_timestamp($8) end,
    to_timestamp($10),
    case when $10 is not null then to_timestamp($7) end
)
on conflict (endpoint, path, source) do update
set round_since = coalesce(excluded.round_since, known.round_since),
    round_until = coalesce(excluded.round_until, known.round_until),
    reconciled_until = greatest(known.reconciled_until, excluded.reconciled_until),
    cursor = case when $6 or $9 then known.cursor end,
    gap_since = least(known.gap_since, excluded.gap_since),
    gap_until = greatest(known.gap_until, excluded.gap_until)
returning case when not $6 then known.cursor end as cursor
