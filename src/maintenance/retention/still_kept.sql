-- The deliveries of which something is kept that may still run. Without their claims they would be processed again, so they
-- are left for a round in which nothing is kept of them. Without this: A takes it, B processes it and misses what A has
-- taken, the claim is deleted, and A claims and commits: two effects.
--
-- $1 endpoint, $2 tenants, $3 ids.
select tenant, delivery_id
from idempotent_webhook.kept_deliveries
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
    and state <> 'processed'
