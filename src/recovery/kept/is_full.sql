-- Whether the endpoint $1 keeps at least $2 deliveries, or at least $3 bytes of bodies. Processed deliveries are left
-- out, and so are deliveries that were erased before they had failed.
--
-- Each part of the union has an index. A single condition `state <> 'processed'` would read the whole archive.
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
