-- Drops a delivery that its handler has discarded, in whichever state it is kept.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state <> 'processed'
