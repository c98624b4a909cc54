-- Whether the endpoint $1 keeps $2 deliveries, or $3 bytes of bodies, those that are processed not included, nor what
-- was erased before it had failed.
--
-- In two parts, for which there are indexes. With `state <> 'processed'`, it would read the whole archive.
select count(*) >= $2 or coalesce(sum(body_bytes), 0) >= $3
from (
    (
        select body_bytes
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and state = 'due'
        limit $2
    )
    union all
    (
        select body_bytes
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and state in ('dead', 'recorded') and last_failed_at is not null
        limit $2
    )
) as kept
