-- Deletes the kept row of a delivery, because its handler has discarded the delivery, or its body was processed under
-- another id.
--
-- $4 is the take number of the attempt: the counter `takes` of the row, which each take increases. The row is deleted
-- only if it is due and still has this number. For a request from the provider, $4 is `null`, and the row is deleted in
-- any state except `processed`.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and state <> 'processed'
    -- An outdated attempt must not delete the row. Suppose that the transaction of attempt A is lost, attempt B
    -- processes the delivery, and an operator reprocesses it. Without this condition, A would delete the reprocessed
    -- delivery.
    and ($4::bigint is null or state = 'due' and takes = $4)
