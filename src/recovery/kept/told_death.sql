-- Records that a hook was called for a dead delivery, whose last take had the number $4. It may have died again
-- since.
update idempotent_webhook.kept_deliveries
set untold_at = null
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and takes = $4
