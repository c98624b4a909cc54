-- The provider sends a delivery again whose attempt runs, or is taken over within seconds. That attempt is the answer, and
-- its row may be locked until it ends: this does not wait for it.
--
-- Without this: an operator discards many, the provider sends one of them again and hears that it is accepted, and it is
-- discarded.
--
-- $1 endpoint, $2 tenant, $3 id.
with taken as (
    select endpoint, tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and state = 'due' and taken_by is not null
    for update skip locked
)
update idempotent_webhook.kept_deliveries as kept
set last_received_at = statement_timestamp()
from taken
where kept.endpoint = taken.endpoint
    and kept.tenant = taken.tenant
    and kept.delivery_id = taken.delivery_id
