-- What was kept of the requests of the deliveries $2 (tenants) and $3 (ids) of the endpoint $1.
select tenant, delivery_id, format, method, uri, headers, body
from idempotent_webhook.kept_requests
where endpoint = $1 and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
