-- Returns deliveries that are both kept and processed. This happens if a failure is kept while another process is still
-- running the delivery.
--
-- The limit is a literal, so that the planner knows that it is small.
--
-- $1 endpoint.
with failed as materialized (
    select kept.endpoint, kept.tenant, kept.delivery_id
    from idempotent_webhook.kept_deliveries as kept
    where kept.endpoint = $1
        and kept.state in ('recorded', 'due', 'dead')
        and kept.last_failed_at is not null
        and kept.taken_by is null
)
select failed.tenant, failed.delivery_id
from failed
join idempotent_webhook.deliveries as claim
    on claim.delivery_id = any (array[failed.delivery_id])
        and claim.endpoint = failed.endpoint
        and claim.tenant = failed.tenant
limit 1000
