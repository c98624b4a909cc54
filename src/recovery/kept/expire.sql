-- The numbers $1 belong to dead processes: their last heartbeats are still $2. Deliveries that these processes have
-- taken are free. A locked row belongs to a heartbeat at this moment. Without `heartbeat`: 1 takes it, its number is
-- deleted, and 2 takes it while it runs. Without all of this: 1 is killed, and its deliveries are due forever.
delete from idempotent_webhook.processes
where number in (
    select number
    from idempotent_webhook.processes
    join unnest($1::bigint[], $2::bigint[]) as silent (number, heartbeat) using (number, heartbeat)
    for update of processes skip locked
)
