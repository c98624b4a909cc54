-- A hook has heard that a delivery is dead, which was taken $4 times by then. It may have died again since.
update idempotent_webhook.kept_deliveries
set untold_at = null
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and takes = $4
