-- Records that a hook was called for a dead delivery. $4 is the take number of the delivery when it died: the counter
-- `takes` of the row, which each take increases. If the row has another number by now, the delivery has run again. It
-- may have died again, which this call did not report, so nothing is recorded.
update idempotent_webhook.kept_deliveries
set untold_at = null
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and takes = $4
