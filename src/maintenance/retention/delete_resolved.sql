-- Deletes the kept rows of processed deliveries. `lock_resolved.sql` has locked these rows.
--
-- $1 endpoints, $2 tenants, $3 ids.
delete from idempotent_webhook.kept_deliveries as kept
using unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
