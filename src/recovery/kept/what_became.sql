-- What has happened to a delivery during an attempt that no longer owns its row: whether it was processed, whether
-- it is kept to run again, and whether it was discarded since the attempt started, $4 ago.
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
        where endpoint = $1 and tenant = $2 and delivery_id = $3 and state in ('due', 'dead')
    ) as is_kept,
    exists (
        select 1
        from idempotent_webhook.discarded
        where endpoint = $1 and tenant = $2 and delivery_id = $3 and discarded_at >= now() - $4
    ) as is_discarded
