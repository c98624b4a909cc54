-- An operator discards a delivery, after `lock.sql`, unless it was processed.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state <> 'processed'
returning tenant, delivery_id
