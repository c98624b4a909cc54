-- The heartbeat $3 of a process, which takes deliveries under the numbers $1 and has given up the numbers $2. Returns the
-- last heartbeat of each number of other processes. Without `given_up`: it is taken, the answer is lost, and it is due
-- forever in a living process.
with given_up as (
    delete from idempotent_webhook.processes
    where number = any($2)
),
beaten as (
    insert into idempotent_webhook.processes (number, heartbeat)
    select number, $3
    from unnest($1::bigint[]) as beaten (number)
    on conflict (number) do update
    set heartbeat = excluded.heartbeat
)
select number, heartbeat
from idempotent_webhook.processes
where number <> all($1) and number <> all($2)
