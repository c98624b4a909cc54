-- Whether a delivery was processed, or has a row.
select exists (
    select 1
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
) or exists (
    select 1
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
)
