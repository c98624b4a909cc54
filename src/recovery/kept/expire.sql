-- The numbers $1 are of dead processes: their last heartbeats are still $2. What these processes have taken is free. A row
-- that is locked is one of a heartbeat at this moment. Without `heartbeat`: 1 takes it, its number is deleted, and 2 takes
-- it while it runs. Without all of this: 1 is killed, and what it has taken is due for ever.
delete from idempotent_webhook.processes
where number in (
    select number
    from idempotent_webhook.processes
    join unnest($1::bigint[], $2::bigint[]) as silent (number, heartbeat) using (number, heartbeat)
    for update of processes skip locked
)
