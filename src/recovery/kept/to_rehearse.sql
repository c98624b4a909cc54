-- Reads the kept row and the request of a delivery to rehearse. Returns no row if the delivery or
-- its request was deleted after the delivery was chosen.
--
-- $1 endpoint, $2 tenant, $3 id.
select
    kept.tenant, kept.tenant_name, kept.delivery_id, kept.event_type, kept.attempts, kept.reprocessed, kept.reconciled,
    kept.state, kept.takes,
    -- A delivery that an operator reprocesses is due, and was processed before.
    kept.state = 'processed' or kept.reprocessed as was_processed,
    extract(epoch from kept.first_received_at)::float8 as first_received_at,
    extract(epoch from request.signed_at)::float8 as signed_at,
    request.format, request.method, request.uri, request.headers, request.body
from idempotent_webhook.kept_deliveries as kept
join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
where kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
