-- Returns the deliveries that have a kept row and may therefore still run. Their claims are not deleted in this round,
-- because without its claim, such a delivery could be processed again. For example, process A takes a kept delivery to
-- run it. Process B does not see this, and processes the delivery. If its claim were deleted now, A could claim the
-- delivery as well, and commit: two effects.
--
-- $1 endpoints, $2 tenants, $3 ids.
select key.tenant, key.delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
join idempotent_webhook.kept_deliveries as kept
    on kept.endpoint = any (array[key.endpoint])
        and kept.tenant = key.tenant
        and kept.delivery_id = key.delivery_id
where kept.state <> 'processed'
