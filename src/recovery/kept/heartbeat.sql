-- Writes the heartbeat $3 of a process that takes deliveries under the numbers $1 and has given up the numbers $2.
-- Returns the last heartbeat of each number of other processes. Numbers that were given up are deleted. If they were
-- not deleted, and the answer to a take were lost, the deliveries of that take would count as taken for as long as the
-- process lives.
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
