-- The endpoints with deliveries that can be rehearsed.
select endpoint.name
from (select distinct endpoint as name from idempotent_webhook.kept_deliveries) as endpoint
where exists (
    select
    from idempotent_webhook.kept_deliveries as kept
    join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
    where kept.endpoint = endpoint.name
)
order by endpoint.name
