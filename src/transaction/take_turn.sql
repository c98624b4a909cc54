-- Takes the turn in the task $1 for the process $5, or extends the one that this process has. A row if the turn is due, or $8
-- allows an early one, no other process is in it, and the database
-- is of the environment $9. The row is locked to the end of the transaction.
--
-- $2 endpoint, $3 address, $4 source, $6 for how long, $7 the longest time until a turn. Without a process, the turn ends with
-- the transaction.
--
-- A turn that is due later than it can be was ended before the clock was set back: without that condition, no process would
-- have its turn for a long time. By a minute at least: this transaction may have begun before the one that has set it.
insert into idempotent_webhook.turns as turn (task, endpoint, address, source, process, next_at)
select $1, $2, $3, $4, $5, now() + $6
where $9::text is not distinct from (select name from idempotent_webhook.environment)
on conflict (task, endpoint, address, source) do update
set process = excluded.process, next_at = excluded.next_at
where turn.process = excluded.process
    or turn.next_at not between now() and now() + $7 + interval '1 minute'
    or $8 and turn.process is null
returning true
