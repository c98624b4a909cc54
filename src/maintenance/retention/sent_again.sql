-- Deletes the notes of deliveries that came again: no operation takes a day. An operation waits for this statement, and further
-- notes wait for the operation. So it is the last one of its transaction, and of few rows.
delete from idempotent_webhook.sent_again
where (delivery_id, endpoint, tenant) in (
    select delivery_id, endpoint, tenant
    from idempotent_webhook.sent_again
    where received_at < now() - interval '1 day'
    limit 20000
)
