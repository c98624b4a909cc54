-- An operator discards deliveries of the endpoints $1 with the tenants $2 and the ids $3, whose rows are locked.
delete from idempotent_webhook.kept_deliveries as kept
using unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
