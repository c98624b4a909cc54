-- Takes the turn at the task $1 for the process $5, or extends the turn that this process already has. A *turn* lets
-- one process at a time run a task. A process gets the turn if three conditions hold: the turn is due (or $8 allows an
-- early turn), no other process has the turn, and the database belongs to the environment $9. The statement then
-- returns a row, and the turn's row stays locked until the end of the transaction.
--
-- $2 endpoint, $3 address, $4 source, $6 for how long, $7 the longest time until the next turn. If no process is given,
-- the turn ends with the transaction.
--
-- If a turn is due later than $7 allows, the clock was set back after the last turn. Without the condition on $7, no
-- process would get the turn for a long time. The condition adds a minute because this transaction may have begun
-- before the transaction that set the due time.
insert into idempotent_webhook.turns as turn (task, endpoint, address, source, process, next_at)
select $1, $2, $3, $4, $5, now() + $6
where $9::text is not distinct from (select name from idempotent_webhook.environment)
on conflict (task, endpoint, address, source) do update
set process = excluded.process, next_at = excluded.next_at
where turn.process = excluded.process
    or turn.next_at not between now() and now() + $7 + interval '1 minute'
    or $8 and turn.process is null
returning true
