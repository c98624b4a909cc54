-- Begins a round, or resumes the one that another process has left, if it is due and nobody else has the
-- turn.
--
-- $1 endpoint, $2 path, $3 source, $4 since when deliveries are recorded, $5 the process, $6 for how long it is its
-- turn, $7 and $8 the times of the events that a new round looks at, $9 whether to begin a new round now, $10 since
-- when events count.
insert into idempotent_webhook.reconciliations as known
    (endpoint, path, source, begins_at, process, turn_ends_at, round_since, round_until)
values ($1, $2, $3, to_timestamp($4), $5, now() + $6, to_timestamp($7), to_timestamp($8))
on conflict (endpoint, path, source) do update
set process = excluded.process,
    turn_ends_at = excluded.turn_ends_at,
    round_since = case
        when $9 or known.round_since is null then excluded.round_since
        else greatest(known.round_since, to_timestamp($10))
    end,
    round_until = case
        when $9 or known.round_until is null then excluded.round_until
        else known.round_until
    end,
    cursor = case when $9 then null else known.cursor end
where (known.turn_ends_at is null or known.turn_ends_at < now()) and ($9 or known.next_round_at <= now())
returning
    extract(epoch from known.round_since)::float8 as since,
    extract(epoch from known.round_until)::float8 as until,
    known.cursor
