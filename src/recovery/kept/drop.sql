-- Drops a delivery that its handler has discarded: for the attempt with take number $4, unless the row was taken or
-- changed since; for a request of the provider ($4 is `null`), in any state.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state <> 'processed'
    -- Without this: A's transaction is lost, B processes it, an operator has it processed again, and A discards that.
    and ($4::bigint is null or state = 'due' and takes = $4)
