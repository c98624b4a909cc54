-- Notes that the provider has sent a kept delivery again, before the provider gets the answer that this is
-- accepted. The statement waits for no attempt. It waits for an operation on many deliveries of the same endpoint
-- only while the operation commits (`operation.rs`), by a lock that all notes of the endpoint share.
--
-- Without this: an attempt runs, an operator starts to discard many deliveries, the provider sends the delivery
-- again and gets the answer that it is accepted, the attempt fails, and the delivery is discarded.
--
-- $1 endpoint, $2 tenant, $3 id.
insert into idempotent_webhook.sent_again (endpoint, tenant, delivery_id)
values (
    case when pg_advisory_xact_lock_shared(hashtextextended($1, 4)) is not null then $1 end, $2, $3
)
on conflict (delivery_id, endpoint, tenant) do update
set received_at = statement_timestamp()
