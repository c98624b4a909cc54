-- Remembers deliveries that were discarded or forgotten, or that are replays, so that a provider list leaves them
-- alone: endpoints $1, tenants $2, ids $3. If $4 is true, deliveries of an endpoint that is not reconciled are not
-- remembered.
--
-- Without this record, a delivery that is processed and then forgotten could take effect twice, because reconciliation
-- would not find it among the processed deliveries, and would have it run again.
insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
select endpoint, tenant, delivery_id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where not $4 or exists (
    select from idempotent_webhook.reconciliations as list where list.endpoint = key.endpoint
)
-- All processes insert in the same order, so that two processes cannot deadlock.
order by tenant, delivery_id
on conflict (endpoint, tenant, delivery_id) do update
set discarded_at = now()
