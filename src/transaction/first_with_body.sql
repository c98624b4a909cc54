-- The id of the delivery that was claimed with this body.
--
-- $1 endpoint, $2 tenant, $3 digest.
select delivery_id
from idempotent_webhook.bodies
where endpoint = $1 and tenant = $2 and digest = $3
