-- Whether a delivery was discarded during an attempt at it, which has begun $4 ago.
--
-- $1 endpoint, $2 tenant, $3 id.
select true
from idempotent_webhook.discarded
where endpoint = $1 and tenant = $2 and delivery_id = $3 and discarded_at >= now() - $4
