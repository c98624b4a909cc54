-- Reserves a dead delivery of the endpoints $1 that was not reported to any hook yet: the delivery that has waited
-- longest. This process then reports it to its hook. If the report is not recorded within the time $2, another process
-- may report the delivery. The process that made the delivery dead should have reported it long ago, but it was killed,
-- or the answer to its commit was lost. In a database that does not belong to the environment $3, nothing is reserved.
with untold as (
    select endpoint, tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where state = 'dead'
        and endpoint = any($1)
        and untold_at not between now() and now() + 2 * $2
        and $3::text is not distinct from (select name from idempotent_webhook.environment)
    order by untold_at
    limit 1
    for update skip locked
)
update idempotent_webhook.kept_deliveries as kept
set untold_at = now() + $2
from untold
left join idempotent_webhook.kept_requests as request
    on request.delivery_id = any (array[untold.delivery_id])
        and request.endpoint = untold.endpoint
        and request.tenant = untold.tenant
where kept.endpoint = any (array[untold.endpoint])
    and kept.tenant = untold.tenant
    and kept.delivery_id = untold.delivery_id
returning
    kept.endpoint, kept.tenant, kept.tenant_name, kept.delivery_id, kept.event_type, kept.attempts,
    kept.takes, kept.reprocessed, kept.reconciled, kept.reason,
    extract(epoch from kept.first_received_at)::float8 as first_received_at,
    extract(epoch from request.signed_at)::float8 as signed_at
