-- What is known about a delivery before its handler runs, with a late claim: whether it was processed, and whether
-- an operator has it processed again.
--
-- Citus cannot run a subquery without a column beside one on another kind of table: hence `select 1`.
--
-- $1 endpoint, $2 tenant, $3 id.
select
    exists (
        select 1
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    ) as is_processed,
    exists (
        select 1
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3 and reprocessed
    ) as is_reprocessed
