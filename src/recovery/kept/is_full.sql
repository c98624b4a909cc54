-- Whether the endpoint $1 keeps $2 deliveries, or $3 bytes of bodies, those that are processed not
-- included. What turns out to be processed is deleted or archived when its turn comes, and does not count.
select count(*) >= $2 or coalesce(sum(body_bytes), 0) >= $3
from (
    select body_bytes
    from idempotent_webhook.kept_deliveries as kept
    where endpoint = $1
        and state <> 'processed'
        and not exists (
            select
            from idempotent_webhook.deliveries
            where deliveries.endpoint = kept.endpoint
                and deliveries.tenant = kept.tenant
                and deliveries.delivery_id = kept.delivery_id
        )
    limit $2
) as kept
