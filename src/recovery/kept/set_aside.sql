-- Remembers deliveries of the endpoints $1 that are discarded, forgotten or replays, with the tenants $2 and the ids $3: a list
-- of the provider leaves them alone. With $4, only if the endpoint is reconciled.
--
-- Without this: it is processed and forgotten, reconciliation finds it missing, and it has a second effect.
insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
select endpoint, tenant, delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where not $4 or exists (
    select from idempotent_webhook.reconciliations as list where list.endpoint = key.endpoint
)
-- Two processes do not wait for each other in a circle.
order by tenant, delivery_id
on conflict (endpoint, tenant, delivery_id) do update
set discarded_at = now()
