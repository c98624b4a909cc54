-- Notes that the provider has sent a delivery again that is kept, before it hears that this is accepted. It waits for no
-- attempt, and for an operation on many deliveries only while that commits (`operation.rs`).
--
-- Without this: an attempt runs, an operator begins to discard many, the provider sends the delivery again and hears that it
-- is accepted, the attempt fails, and the delivery is discarded.
--
-- $1 endpoint, $2 tenant, $3 id.
insert into idempotent_webhook.sent_again (endpoint, tenant, delivery_id)
values ($1, $2, $3)
on conflict (delivery_id, endpoint, tenant) do update
set received_at = statement_timestamp()
