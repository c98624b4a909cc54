-- Returns which of the locked deliveries are processed. This statement is separate from `lock_resolved.sql`, because
-- one of the two tables may be distributed.
--
-- $1 endpoints, $2 tenants, $3 ids.
select key.tenant, key.delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
join idempotent_webhook.deliveries as claim
    on claim.delivery_id = any (array[key.delivery_id])
        and claim.endpoint = key.endpoint
        and claim.tenant = key.tenant
