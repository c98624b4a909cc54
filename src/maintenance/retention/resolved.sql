-- Deliveries that are kept and processed: a failure was kept while another process was running the delivery.
--
-- The limit is a number in the text, for the planner to know that it is a small one.
--
-- $1 endpoint.
select kept.tenant, kept.delivery_id
from idempotent_webhook.kept_deliveries as kept
join idempotent_webhook.deliveries using (endpoint, tenant, delivery_id)
where kept.endpoint = $1
    and kept.state in ('recorded', 'due', 'dead')
    and kept.last_failed_at is not null
    and kept.taken_by is null
limit 1000
