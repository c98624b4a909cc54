-- What is known of a delivery before its handler runs, if it is claimed late: whether it was processed, and whether
-- an operator has it processed again.
--
-- $1 endpoint, $2 tenant, $3 id.
select
    exists (
        select
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    ) as is_processed,
    coalesce(
        (
            select reprocessed
            from idempotent_webhook.kept_deliveries
            where endpoint = $1 and tenant = $2 and delivery_id = $3
        ),
        false
    ) as is_reprocessed
