-- Deletes deliveries that an operator discards: endpoints $1, tenants $2, ids $3. The transaction has already locked
-- their rows.
delete from idempotent_webhook.kept_deliveries as kept
using unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
