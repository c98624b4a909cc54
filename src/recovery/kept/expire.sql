-- Processes that have been silent for $1 are gone: what they have taken is free. One that is heard of at this moment
-- is not. Without `heard_at`: 1 takes it, its number is deleted, and 2 takes it while it runs. Without all of this: 1 is
-- killed, and what it has taken is due for ever.
delete from idempotent_webhook.processes
where number in (
    select number
    from idempotent_webhook.processes
    where heard_at < now() - $1
    for update skip locked
)
