-- Without this: it is processed and forgotten, reconciliation finds it missing, and it has a second effect.
--
-- Remembers deliveries of the endpoint $1 that are discarded or forgotten, with the tenants $2 and the ids $3.
insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
select $1, tenant, delivery_id
from unnest($2::text[], $3::text[]) as discarded (tenant, delivery_id)
-- Two processes do not wait for each other in a circle.
order by tenant, delivery_id
on conflict (endpoint, tenant, delivery_id) do update
set discarded_at = now()
