-- An operator discards deliveries of the endpoint $1 with the tenants $2 and the ids $3, whose rows are locked.
delete from idempotent_webhook.kept_deliveries
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
