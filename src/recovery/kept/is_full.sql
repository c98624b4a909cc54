-- Whether the endpoint $1 keeps $2 deliveries, or $3 bytes of bodies, those that are processed not
-- included.
select count(*) >= $2 or coalesce(sum(body_bytes), 0) >= $3
from (
    select body_bytes
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and state <> 'processed'
    limit $2
) as kept
