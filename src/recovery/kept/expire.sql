-- Deletes the numbers $1 of dead processes, if their last heartbeats are still $2. Deliveries that were taken under
-- these numbers are free then. A row that a heartbeat is writing at this moment is locked, and is left alone.
-- Without `heartbeat`: process 1 takes a delivery, its number is deleted although it lives, and process 2 takes the
-- delivery while it runs. Without this statement: process 1 is killed, and no process ever takes its deliveries
-- again.
delete from idempotent_webhook.processes
where number in (
    select number
    from idempotent_webhook.processes
    join unnest($1::bigint[], $2::bigint[]) as silent (number, heartbeat) using (number, heartbeat)
    for update of processes skip locked
)
