-- Drops a delivery that its handler has discarded: for an attempt that has taken it, the one that was number $4 to take
-- it, unless it was taken or changed since. For a request of the provider, where $4 is `null`, in whichever state it is.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state <> 'processed'
    -- Without this: A's transaction is lost, B processes it, an operator has it processed again, and A discards that.
    and ($4::bigint is null or state = 'due' and takes = $4)
