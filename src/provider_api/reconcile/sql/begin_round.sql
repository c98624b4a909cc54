-- Begins a round, or resumes an unfinished one. Only its own process knows a round on request: it leaves the times and the page
-- of the unfinished round.
--
-- $1 endpoint, $2 path, $3 source, $4 since when deliveries are recorded, $5 until when the list is reconciled, if
-- that was at another path, $6 whether it is a round on request, $7 and $8 the times of the events, $9 whether it is resumed,
-- $10 since when events are too old for it, up to $7, `null` if none are.
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
