-- Locks the rows that have not changed since they were selected. Until the rows are deleted, no operator can forget or
-- reprocess their deliveries. Without the lock, an operator could reprocess a selected delivery, and its row would be
-- deleted before the delivery runs.
--
-- $1 endpoints, $2 tenants, $3 ids.
select key.tenant, key.delivery_id, coalesce(kept.body_bytes, 0) as body_bytes
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
join idempotent_webhook.kept_deliveries as kept
    on kept.endpoint = any (array[key.endpoint])
        and kept.tenant = key.tenant
        and kept.delivery_id = key.delivery_id
where kept.state <> 'processed'
    and coalesce(kept.last_failed_at, 'infinity') < 'infinity'
    and kept.taken_by is null
for update of kept skip locked
