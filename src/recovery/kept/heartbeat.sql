-- A process is heard of under the numbers $1, and has given up the numbers $2. Returns whether another one has been
-- silent for $3. Without `given_up`: it is taken, the answer is lost, and it is due for ever in a process that lives.
with given_up as (
    delete from idempotent_webhook.processes
    where number = any($2)
),
heard as (
    insert into idempotent_webhook.processes (number, heard_at)
    select number, now()
    from unnest($1::bigint[]) as heard (number)
    on conflict (number) do update
    set heard_at = excluded.heard_at
)
select exists (
    select
    from idempotent_webhook.processes
    where heard_at < now() - $3 and number <> all($1) and number <> all($2)
)
