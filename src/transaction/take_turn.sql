-- Returns a row if it is the turn of the process $2 in the task $1, for $3 from now on: no other process has it, or $4 says
-- so. The row is locked to the end of the transaction.
--
-- A turn that ends later than one can was taken before the clock was set back: without that condition, no process would have
-- its turn for a long time.
insert into idempotent_webhook.turns as turn (name, process, ends_at)
values ($1, $2, now() + $3)
on conflict (name) do update
set process = excluded.process, ends_at = excluded.ends_at
where $4
    or turn.process = excluded.process
    or turn.ends_at not between now() and now() + $3
returning true
