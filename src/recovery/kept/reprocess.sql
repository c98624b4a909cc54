-- An operator has a processed delivery run again, whose request is still there: its claim is forgotten.
with chosen as (
    select endpoint, tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and state = 'processed'
    for update
),
forgotten as (
    delete from idempotent_webhook.deliveries
    using chosen
    where deliveries.endpoint = chosen.endpoint
        and deliveries.tenant = chosen.tenant
        and deliveries.delivery_id = chosen.delivery_id
    returning deliveries.endpoint, deliveries.tenant, deliveries.delivery_id, deliveries.digest
),
body as (
    delete from idempotent_webhook.bodies
    using forgotten
    where bodies.endpoint = forgotten.endpoint
        and bodies.tenant = forgotten.tenant
        and bodies.digest = forgotten.digest
        and bodies.delivery_id = forgotten.delivery_id
)
update idempotent_webhook.kept_deliveries as kept
set state = 'due', retries = 0, next_attempt_at = now(), taken_at = null, takes = takes + 1,
    reprocessed = true, processed_at = null, archived_until = null
from chosen
where kept.endpoint = chosen.endpoint
    and kept.tenant = chosen.tenant
    and kept.delivery_id = chosen.delivery_id
returning 1
