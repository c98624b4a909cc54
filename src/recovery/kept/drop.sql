-- Deletes a delivery that its handler has discarded, or whose body was processed under another id. For the attempt
-- with the take number $4, it does so unless the row was taken or changed since; for a request of the provider ($4
-- is `null`), in any state except `processed`.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state <> 'processed'
    -- Without this: the transaction of attempt A is lost, attempt B processes the delivery, an operator reprocesses
    -- it, and A deletes the reprocessed delivery.
    and ($4::bigint is null or state = 'due' and takes = $4)
