-- Remembers deliveries that are discarded, forgotten or replays, so that a provider list leaves them alone:
-- endpoints $1, tenants $2, ids $3. With $4, only if the endpoint is reconciled.
--
-- Without this: a delivery is processed and forgotten, reconciliation finds it missing, and it has a second effect.
insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
select endpoint, tenant, delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where not $4 or exists (
    select from idempotent_webhook.reconciliations as list where list.endpoint = key.endpoint
)
-- In one order, so that two processes cannot deadlock.
order by tenant, delivery_id
on conflict (endpoint, tenant, delivery_id) do update
set discarded_at = now()
