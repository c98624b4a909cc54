-- Processes that have been silent for $1 are gone: what they have taken is free. One that is heard of at this moment
-- is not.
delete from idempotent_webhook.processes
where number in (
    select number
    from idempotent_webhook.processes
    where heard_at < now() - $1
    for update skip locked
)
