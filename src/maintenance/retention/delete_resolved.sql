-- Ends what is kept of deliveries that are locked and processed.
--
-- $1 endpoint, $2 tenants, $3 ids.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
