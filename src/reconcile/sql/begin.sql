-- Begins a round, or goes on with the one that another process has left, if it is time and nobody else is in it.
--
-- $1 endpoint, $2 path, $3 source, $4 since when events count, $5 the process, $6 for how long it is its turn,
-- $7 and $8 the times of the events that a new round looks at, $9 whether to begin a new round now.
insert into idempotent_webhook.reconciliations as known
    (endpoint, path, source, begins_at, process, turn_ends_at, round_since, round_until)
values ($1, $2, $3, to_timestamp($4), $5, now() + $6, to_timestamp($7), to_timestamp($8))
on conflict (endpoint, path, source) do update
set process = excluded.process,
    turn_ends_at = excluded.turn_ends_at,
    begins_at = least(known.begins_at, excluded.begins_at),
    round_since = case when $9 then null else known.round_since end,
    round_until = case when $9 then null else known.round_until end,
    cursor = case when $9 then null else known.cursor end
where (known.turn_ends_at is null or known.turn_ends_at < now()) and ($9 or known.next_round_at <= now())
returning
    extract(epoch from coalesce(known.round_since, to_timestamp($7)))::float8 as since,
    extract(epoch from coalesce(known.round_until, to_timestamp($8)))::float8 as until,
    known.cursor
