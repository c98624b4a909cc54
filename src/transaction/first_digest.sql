-- The digest of the delivery that was claimed with this id.
--
-- $1 endpoint, $2 tenant, $3 id.
select digest
from idempotent_webhook.deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
