-- The kept requests of the deliveries $2 (tenants) and $3 (ids) of the endpoints $1.
select key.tenant, key.delivery_id, format, method, uri, headers, body
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
join idempotent_webhook.kept_requests as request
    on request.delivery_id = any (array[key.delivery_id])
        and request.endpoint = key.endpoint
        and request.tenant = key.tenant
