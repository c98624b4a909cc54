-- Returns the deliveries that have a kept row which may still run. Without their claims, they would be processed again,
-- so their claims are left for a round in which they have no such row. Without this: A takes a delivery, B processes it
-- and does not see that A has taken it, the claim is deleted, and A claims and commits: two effects.
--
-- $1 endpoints, $2 tenants, $3 ids.
select key.tenant, key.delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
join idempotent_webhook.kept_deliveries as kept
    on kept.endpoint = any (array[key.endpoint])
        and kept.tenant = key.tenant
        and kept.delivery_id = key.delivery_id
where kept.state <> 'processed'
