-- Deletes the numbers $1 of dead processes, if their last heartbeats are still $2. This frees the deliveries that were
-- taken under these numbers (`liveness/mod.rs`). A row that is locked is left alone, because its process is writing a
-- heartbeat at this moment.
--
-- Without the comparison of `heartbeat`, the number of a living process could be deleted, and another process would
-- take a delivery that is still running. Without this statement, no process would ever take the deliveries of a killed
-- process.
delete from idempotent_webhook.processes
where number in (
    select number
    from idempotent_webhook.processes
    join unnest($1::bigint[], $2::bigint[]) as silent (number, heartbeat) using (number, heartbeat)
    for update of processes skip locked
)
