-- What is known about a delivery with a late claim before its handler runs: whether it was processed, and whether an
-- operator has asked to reprocess it.
--
-- The subqueries say `select 1` because of Citus: if a statement reads different kinds of tables, Citus cannot run a
-- subquery that selects no column.
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
