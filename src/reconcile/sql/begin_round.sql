-- Begins a round, or resumes the one that was left, if it is due and no other process has the turn. This process still has the
-- turn if it could not note that its round was broken off, and then resumes that round: it takes no turn of its own that it did
-- not see when it chose the times of the events. A round on request is known to its process alone: it takes the
-- turn, and leaves the times and the page of the round that is to be resumed.
--
-- $1 endpoint, $2 path, $3 source, $4 since when deliveries are recorded, $5 until when the list is reconciled, if
-- that was at another path, $6 the process, $7 for how long it is its turn, $8 whether it is a round on request, $9
-- and $10 the times of the events, $11 whether it is resumed, $12 since when events are too old for it, up to $9,
-- `null` if none are.
insert into idempotent_webhook.reconciliations as known (
    endpoint, path, source, begins_at, reconciled_until, process, turn_ends_at, round_since, round_until,
    gap_since, gap_until
)
values (
    $1, $2, $3, to_timestamp($4), to_timestamp($5), $6, now() + $7,
    case when not $8 then to_timestamp($9) end,
    case when not $8 then to_timestamp($10) end,
    to_timestamp($12),
    case when $12 is not null then to_timestamp($9) end
)
on conflict (endpoint, path, source) do update
set process = excluded.process,
    turn_ends_at = excluded.turn_ends_at,
    round_since = coalesce(excluded.round_since, known.round_since),
    round_until = coalesce(excluded.round_until, known.round_until),
    reconciled_until = greatest(known.reconciled_until, excluded.reconciled_until),
    cursor = case when $8 or $11 then known.cursor end,
    gap_since = least(known.gap_since, excluded.gap_since),
    gap_until = greatest(known.gap_until, excluded.gap_until)
where (known.turn_ends_at is null or known.turn_ends_at < now() or $11 and known.process = excluded.process)
    and ($8 or known.next_round_at <= now())
returning case when not $8 then known.cursor end as cursor
