-- The deliveries that are processed, of those that are locked. This is not part of the statement before it, since one of the
-- tables may be distributed.
--
-- $1 endpoint, $2 tenants, $3 ids.
select tenant, delivery_id
from idempotent_webhook.deliveries
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
