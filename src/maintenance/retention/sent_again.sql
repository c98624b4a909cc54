-- Deletes notes that a delivery was sent again, once they are a day old. Only an operator's action
-- that is still running needs such a note, and no action takes that long.
with old as materialized (
    select delivery_id, endpoint, tenant
    from idempotent_webhook.sent_again
    where received_at > '-infinity' and received_at < now() - interval '1 day'
    order by received_at
    limit 20000
)
delete from idempotent_webhook.sent_again as again
using old
where again.delivery_id = any (array[old.delivery_id])
    and again.endpoint = old.endpoint
    and again.tenant = old.tenant
