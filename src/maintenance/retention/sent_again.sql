-- Deletes the notes of deliveries that came again: no operation takes a day.
delete from idempotent_webhook.sent_again
where (delivery_id, endpoint, tenant) in (
    select delivery_id, endpoint, tenant
    from idempotent_webhook.sent_again
    where received_at < now() - interval '1 day'
    order by received_at
    limit 20000
)
