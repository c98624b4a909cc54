-- Records that the provider was asked to send the delivery $3 of the endpoint $1 and the tenant $2 again. Returns a row
-- if this was the first time.
insert into idempotent_webhook.redelivery_requests (endpoint, tenant, delivery_id)
values ($1, $2, $3)
on conflict do nothing
returning 1
