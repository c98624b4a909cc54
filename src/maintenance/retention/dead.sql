-- Returns deliveries that have been dead for longer than $2. Their content is to be erased.
--
-- $1 endpoint.
select tenant, delivery_id, coalesce(body_bytes, 0) as body_bytes
from idempotent_webhook.kept_deliveries
where endpoint = $1 and state = 'dead' and died_at < now() - $2
order by died_at
limit 1000
for update skip locked
