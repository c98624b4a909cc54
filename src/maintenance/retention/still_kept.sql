-- The deliveries of which something is kept that may still run. Without their claims they would be processed again, so they
-- are left for a round in which nothing is kept of them. Without this: A takes it, B processes it and misses what A has
-- taken, the claim is deleted, and A claims and commits: two effects.
--
-- $1 endpoints, $2 tenants, $3 ids.
select key.tenant, key.delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
join idempotent_webhook.kept_deliveries as kept
    on kept.endpoint = any (array[key.endpoint])
        and kept.tenant = key.tenant
        and kept.delivery_id = key.delivery_id
where kept.state <> 'processed'
